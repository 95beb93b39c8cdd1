"""All that a run is between two commands.

clearing_policy    when clearing is worth trying: a rolling rate of payments refused for capacity, hysteresis
counters           what a run counts, and when the counts end it
digests            A running SHA-256 that can be put away and taken up again
network            the network of a run: participants, one book for each equivalent
"""
