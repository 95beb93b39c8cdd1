"""Who owes whom, and what can move. Knows no tick and no run.

book           who owes whom: debts, limits and capacities in exact atoms, kept up hop by hop
circulation    clearing at its best: of all circulations over the debts
cycles         circles of debt, cleared one by one in one total order: short ones first, then large ones
max_flow       the most that can flow between two participants
payment        one payment: found, held, carried out, checked; or refused with a reason
routing        ways for a payment: shortest first, ties by the smallest sequence of ids
trust          trust that grows where debts are cleared and shrinks where they stay high; whole cents
"""
