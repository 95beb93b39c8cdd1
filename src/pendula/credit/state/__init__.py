"""The complete state of a run between two commands. Only the engine and the modules it dispatches to change it.

run_state          the whole state, and its status
network            participants, and one ledger per equivalent: book, payments, market, trust
clearing_policy    when clearing is worth trying: rate, hysteresis, cooldown, backoff
waiting            payments that the rate limit holds back until a later tick
counters           counters of a run, and the guardrails on them
hop_counts         attempts and failures of payments at each hop
digests            a running SHA-256 that can be saved and resumed
"""
