"""A fleet written down: its journal, and what can be made of one afterwards.

recording     an engine and its journal; a killed fleet goes on from it
ring_journal  a journal that never stops traffic, whatever the disk does
reading       a journal to look at: the fleet at any tick, replayed at any speed
"""
