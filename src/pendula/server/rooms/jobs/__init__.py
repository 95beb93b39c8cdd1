"""The room of jobs over HTTP, under the paths and codes of its contract.

routes     the calls at `/scheduler/…`
service    the scheduler while it is served: its store, the threads that call it, the pulls that wait
bodies     bodies and queries of calls, of a bounded size
shapes     the same bodies, and the answers, in OpenAPI
errors     the contract's own codes for whatever is refused below `/scheduler`
metrics    what Prometheus reads: what the store holds, and what this process saw pass
answering  between HTTP and the calls: a body in, the answer of a call out
plan_routes
           time plans at `/scheduler/plans`, workers at `/scheduler/workers`
plan_shapes
           the shapes of plans, workers and reasons in OpenAPI
presence   workers that talk to this server: when each was last heard of
"""
