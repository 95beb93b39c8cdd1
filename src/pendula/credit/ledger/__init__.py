"""Who owes whom, and what can move. Knows no tick and no run.

book            debts, limits and capacities in exact atoms, kept up hop by hop
routing         ways for a payment: shortest first, ties by the smallest ids
max_flow        the most that can flow between two, and routes refused only where none can carry the amount
payment         one payment: found, held, carried out, checked; or refused with a reason
cures           what would let a refused payment pass
cycles          circles of debt, cleared one by one in one total order
circulation     the best circulation: asked for, proven, taken apart into circles
trust           limits that grow where debts are cleared and shrink where they stay high
"""

from pendula.credit.ledger.circulation import WrongFlows, check
from pendula.credit.ledger.cycles import DebtGraph, find_and_clear

__all__ = [
    "DebtGraph",  # the debts that may be cleared
    "WrongFlows",  # what a solver gave is not the best circulation
    "check",  # prove a circulation
    "find_and_clear",  # clear circles, or say which would be
]
