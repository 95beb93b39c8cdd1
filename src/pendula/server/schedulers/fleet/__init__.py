"""Fleets at `/api/v1/fleet`: created from scenarios, ticked by their loops, inspected and commanded over HTTP.

routes           create, close and inspect fleets
commands         operator actions, tasks, stock and simulated faults; the gateway of real trucks
fleets           the fleets of a server: loops, stored simulations, stored maps
compile_process  large maps, compiled in a separate process
loop             one served fleet: its ticks, and the requests that wait for the next one
trucks           the trucks of a served fleet, simulated or real
alerts           alerts as sentences, and the alert that a fleet falls behind
views            the map, a tick, tasks and streams for the page
metrics          Prometheus metrics
"""
