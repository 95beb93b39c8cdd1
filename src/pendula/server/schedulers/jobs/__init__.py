"""The scheduler of jobs over HTTP, under the paths and codes of its contract.

routes       the calls at `/scheduler/…`, those on governed objects too
answering    between HTTP and the calls: a body of a bounded size in, the answer of a call out
service      the scheduler while it is served: its store, the threads that call it, the pulls that wait
shapes       the same bodies in OpenAPI
errors       the contract's own codes for whatever is refused below `/scheduler`
metrics      what Prometheus reads: what the store holds, and what this process saw pass
"""
