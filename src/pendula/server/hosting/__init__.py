"""One server's engines: made, opened, driven, closed, each with its thread and its time.

creation       engines made and removed while the server runs: each is there whole, or not at all
engine_host    one engine while it is served: its driver, the one thread that touches it, and those who listen
pace           time for an engine that keeps it: a steady clock
streams        event streams: server-sent events with ids, resumed after the last one seen, with every gap told
supervisor     everything one running server holds: settings, tokens, sessions, engines, streams, counters
"""
