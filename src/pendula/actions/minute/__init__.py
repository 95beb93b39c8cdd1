"""The state of a world and its changes, as functions over the state: the phases of a minute.

Within a minute the order is fixed: ends, interrupts, visibility changes, admissions, starts.
"""
