"""The paths of the protocol, below `/api/v1/simulator`.

runs      create, control and inspect runs; their artifacts
networks  scenarios; snapshots, metrics, bottlenecks, payment targets, earlier states
streams   events, streamed or polled
actions   manual actions
caller    owner of a request, and query parameters
"""
