"""Whether a truck can be counted on, before anybody gets a lock: what stops it, what it keeps, how it comes back.

orders        what people order a truck, and what came of it
judging       which of all reasons to stop counts in this tick
recovery      failed trucks keep their cells, and take up their way again
"""
