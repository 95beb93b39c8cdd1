"""The scheduler of jobs over HTTP, under the paths and codes of its contract.

routes       the calls at `/scheduler/…`
plan_routes  time plans at `/scheduler/plans`, workers at `/scheduler/workers`, why a job waits, how it was before
governed/    governed objects: a job in two steps, objects, gates, rollbacks
answering    between HTTP and the calls: a body of a bounded size in, the answer of a call out
service      the scheduler while it is served: its store, the threads that call it, the pulls that wait
shapes       the same bodies in OpenAPI
reply_shapes the answers in OpenAPI
plan_shapes  the shapes of plans, workers and reasons
errors       the contract's own codes for whatever is refused below `/scheduler`
metrics      what Prometheus reads: what the store holds, and what this process saw pass
"""
