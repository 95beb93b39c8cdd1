"""The room of jobs over HTTP, under the paths and codes of its contract.

answering  between HTTP and the calls: a body in, the answer of a call out
bodies     bodies and queries of calls to the scheduler: one JSON object, of a bounded size
errors     what is refused under `/scheduler`
metrics    what Prometheus reads of the scheduler: what the store holds, and what this process saw pass
plan_routes
           time plans at `/scheduler/plans`, workers at `/scheduler/workers`
plan_shapes
           the shapes of plans, workers and reasons in OpenAPI
presence   workers that talk to this server: when each was last heard of
routes     the room `jobs` over HTTP, at the paths of its contract: `/scheduler/…`
service    the scheduler while it is served: its store, the threads that call it
shapes     the bodies of `/scheduler` in OpenAPI: shapes by name
"""
