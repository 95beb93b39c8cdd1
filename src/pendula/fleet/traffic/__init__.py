"""Grants: locks, and the rule that keeps every truck able to get to rest. Resources and trucks are numbers here."""
