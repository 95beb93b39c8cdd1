"""One served fleet: reports and requests go into a tick, commands and answers come out.

loop            ticks one fleet
request_queue   requests that wait for the next tick
trucks          simulated trucks, or real ones behind a gateway
dropped         the last dropped report of each truck
"""
