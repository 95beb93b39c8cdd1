"""Debts, limits and payments of one equivalent. Independent of ticks and runs."""

from pendula.credit.ledger.cycles import DebtGraph, WrongFlows, check, find_and_clear

__all__ = [
    "DebtGraph",  # the debts that may be cleared
    "WrongFlows",  # the answer of a solver is not the best circulation
    "check",  # verify a circulation
    "find_and_clear",  # clear cycles, or list them in a dry run
]
