"""All that a run is between two commands. Only the engine and what it dispatches to change it.

run_state          everything together, and how it is told
network            participants, and a desk for each equivalent: book, cashier, market, trust
clearing_policy    when clearing is worth trying: rate, hysteresis, cooldown, backoff
waiting            payments that a limit holds back until a later tick
counters           what a run counts, and when the counts end it
hop_counts         how often payments tried and failed at each hop
digests            a running SHA-256 that can be put away and taken up again
"""
