"""The cost of the route search."""

from pendula.credit.ledger.routing import Work, shortest
from tests.credit.conftest import book


def test_blocking_lines_off_the_route_cost_no_search() -> None:
    names = [f"p{number:03}" for number in range(60)]
    lines = [(creditor, debtor, 5) for at, creditor in enumerate(names) for debtor in names[at + 1 : at + 9]]
    plain, blocking = book(*lines), book(*lines)
    blocking.policy[0] = blocking.policy[0].__class__(blocked=("stranger",))
    blocking.has_blocked = True
    for sender, receiver in ((59, 0), (30, 2), (0, 59)):
        first, second = Work(10**9), Work(10**9)
        assert shortest(plain, sender, receiver, 6, first) == shortest(blocking, sender, receiver, 6, second)
        assert second.spent == first.spent
