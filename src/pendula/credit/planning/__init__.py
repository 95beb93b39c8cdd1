"""Planned payments of a tick: who wants to pay whom, and how much."""
