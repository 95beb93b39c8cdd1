"""Debts, limits and payments of one equivalent. Independent of ticks and runs.

book            debts, limits and capacities in exact atoms, updated hop by hop
routing         routes for a payment: shortest first, ties by the smallest ids
max_flow        the maximum flow between two participants, and exact routing
payment         one payment: route, reserve, commit, check; or refuse with a reason
cures           changes that would let a refused payment pass
cycles          cycles of debt, cleared one by one in a total order
circulation     the best circulation: requested, verified, split into cycles
trust           limits that grow with clearing and shrink while debts stay high
"""

from pendula.credit.ledger.circulation import WrongFlows, check
from pendula.credit.ledger.cycles import DebtGraph, find_and_clear

__all__ = [
    "DebtGraph",  # the debts that may be cleared
    "WrongFlows",  # the answer of a solver is not the best circulation
    "check",  # verify a circulation
    "find_and_clear",  # clear cycles, or list them in a dry run
]
