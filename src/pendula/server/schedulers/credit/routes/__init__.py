"""The paths of the protocol, below `/api/v1/simulator`.

runs             create, control and inspect runs; their artifacts
scenarios        list, upload and preview scenarios
networks         snapshots, metrics, bottlenecks, payment targets
past             earlier states of a run, for the time slider
streams          events, streamed or polled
actions          manual actions
action_handlers  apply each action, once
caller           owner of a request, and query parameters
"""
