"""Debts, limits and payments of one equivalent. Independent of ticks and runs.

book            debts, limits and capacities in exact atoms, updated hop by hop
routing         routes for a payment: shortest first, ties by the smallest ids
max_flow        the maximum flow between two participants, and exact routing
payment         one payment: route, reserve, commit, check; or refuse with a reason and its cures
cycles          cycles of debt, cleared one by one in a total order, or by the best circulation
"""

from pendula.credit.ledger.cycles import DebtGraph, WrongFlows, check, find_and_clear

__all__ = [
    "DebtGraph",  # the debts that may be cleared
    "WrongFlows",  # the answer of a solver is not the best circulation
    "check",  # verify a circulation
    "find_and_clear",  # clear cycles, or list them in a dry run
]
