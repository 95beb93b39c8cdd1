"""Fleets at `/api/v1/fleet`: made of scenarios, ticked by their loops, looked at and acted on.

routes          fleets come and go over HTTP, and are looked at
acting          actions of people, tasks, goods and room, drills
remote          the gateway of real trucks
bodies          what is sent to a fleet
fleets          the fleets of a server: loops, kept simulations, kept maps
compiler_apart  large maps, compiled in a process of their own
life            one fleet, tick by tick: its loop, who waits for it, its trucks
alerts          alerts as sentences, and one of our own: the fleet does not keep up
views           the map, a moment, tasks and streams, as a page draws them
figures         what Prometheus is told
demo            four trucks in a hall, and what goes wrong with them now and then
"""
