"""The room of jobs over HTTP, under the paths and codes of its contract.

answering  between HTTP and the calls: a body in, the answer of a call out
bodies     bodies and queries of calls to the scheduler: one JSON object, of a bounded size
errors     what is refused under `/scheduler`
metrics    what Prometheus reads of the scheduler: what the store holds, and what this process saw pass
routes     the room `jobs` over HTTP, at the paths of its contract: `/scheduler/…`
service    the scheduler while it is served: its store, the threads that call it
shapes     the bodies of `/scheduler` in OpenAPI: shapes by name
"""
