"""How a served fleet lives: what trucks say and people want goes into a tick, and what it decided goes out.

loop     the life of one fleet, tick by tick
wishes   who waits for a tick, and whose wishes go into it
trucks   simulated trucks, or real ones behind a gateway
dropped  the report of each truck that was dropped last
"""
