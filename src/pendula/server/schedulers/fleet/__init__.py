"""Fleets at `/api/v1/fleet`: created from scenarios, ticked by their loops, inspected and commanded over HTTP.

routes           create, close and inspect fleets
acting           operator actions, tasks, stock and simulated faults
remote           the gateway of real trucks
bodies           request bodies
fleets           the fleets of a server: loops, stored simulations, stored maps
compile_process  large maps, compiled in a separate process
life             one served fleet: its loop, its request queue, its trucks
alerts           alerts as sentences, and the alert that a fleet falls behind
views            the map, a tick, tasks and streams for the page
metrics          Prometheus metrics
"""
