"""The complete state of a run between two commands. Only the engine and the modules it dispatches to change it.

run_state          the whole state, and its status; payments that wait for a later tick
network            participants, and one ledger per equivalent: book, payments, market, trust, counts of hops
clearing_policy    when clearing is worth trying: rate, hysteresis, cooldown, backoff
counters           counters of a run, and the guardrails on them
digests            a running SHA-256 that can be saved and resumed
"""
