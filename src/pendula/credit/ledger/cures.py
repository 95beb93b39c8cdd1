"""What would let a refused payment pass: as few changes to lines as can be found, and every answer is tried first.

A line can stand in the way in three manners: it has too little capacity, it lets no value go on, or it forbids somebody
between. One change is looked for first. Where one is not enough, or does not help because routes are taken greedily,
all changes along one way are named that can carry the whole amount by itself: such a way is always found.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.routing import Found, Path

Trial = Callable[[], bool]


class ChangeKind(StrEnum):
    """What would have to be different about a line."""

    RAISE_LIMIT = "raise_limit"
    ALLOW_MEDIATION = "allow_mediation"
    UNBLOCK = "unblock"


class Change(NamedTuple):
    """A line by its number, what should be different, and for a limit by how many atoms."""

    hop: int
    kind: ChangeKind
    by: int = 0


Cure = tuple[Change, ...]


class Payment(NamedTuple):
    """What was wanted, what was found of it, and how many hops a way may have."""

    sender: int
    receiver: int
    amount: int
    found: Found
    hops: int


def cure_of(book: Book, payment: Payment, chain: Path, passes: Trial) -> Cure:
    """The changes that let the payment pass; `chain` is the shortest of live lines, `passes` looks for routes anew."""
    one = _one_change(book, payment)
    if one is not None and _helps(book, (one,), passes):
        return (one,)
    # Both carry everything alone once they are changed, and both are the first that a search comes to: the chain,
    # because nothing is shorter; the first route, because wider hops make no new ways.
    ways = [route.hops for route in payment.found.routes[:1]] + [chain]
    return min((_changes(book, way, payment.amount) for way in ways), key=len)


def _helps(book: Book, cure: Cure, passes: Trial) -> bool:
    """Whether the payment passes with these changes; they are taken back."""
    before = [(change, book.policy[change.hop]) for change in cure]
    for change in cure:
        apply(book, change)
    try:
        return passes()
    finally:
        for change, policy in reversed(before):
            if change.by:
                book.widen(change.hop, -change.by)
            else:
                book.set_policy(change.hop, policy)


def apply(book: Book, change: Change) -> None:
    """The change, made to the capacities of a book; limits themselves are left to whoever tells them."""
    policy = book.policy[change.hop]
    match change.kind:
        case ChangeKind.RAISE_LIMIT:
            book.widen(change.hop, change.by)
        case ChangeKind.ALLOW_MEDIATION:
            book.set_policy(change.hop, msgspec.structs.replace(policy, mediates=True))
        case ChangeKind.UNBLOCK:
            book.set_policy(change.hop, msgspec.structs.replace(policy, blocked=()))


def _one_change(book: Book, payment: Payment) -> Change | None:
    """The one line whose change joins what the sender reaches with what reaches the receiver, on the shortest way.

    Of ways of one length a limit comes before a permission, then the smallest ids: both can be done, but a permission
    opens a line to everybody.
    """
    missing, taken = payment.amount - payment.found.amount, taken_by(payment.found)
    wide = _Wide(book, missing, taken)
    ahead = wide.ahead(payment.sender, payment.receiver, payment.hops - 1)
    behind = wide.behind(payment.sender, payment.receiver, payment.hops - 1)
    best: tuple[int, bool, int, int] | None = None
    for u, before in ahead.items():
        if best is not None and before + 1 > best[0]:
            break
        hop = book.hop[u]
        for v in book.out[u]:
            after = behind.get(v)
            if after is None or before + 1 + after > payment.hops:
                continue
            lacks = wide.left(hop[v]) < missing
            closed = v != payment.receiver and not book.policy[hop[v]].mediates
            key = before + 1 + after, closed, u, v
            if lacks != closed and (best is None or key < best):
                best = key
    if best is None:
        return None
    _, closed, u, v = best
    h = book.hop[u][v]
    return (
        Change(h, ChangeKind.ALLOW_MEDIATION) if closed else Change(h, ChangeKind.RAISE_LIMIT, missing - wide.left(h))
    )


class _Wide:
    """Who is reached over hops that have capacity for all that is missing beside what the found routes take."""

    def __init__(self, book: Book, missing: int, taken: Mapping[int, int]) -> None:
        self._book, self._missing, self._taken = book, missing, taken

    def left(self, h: int) -> int:
        return self._book.capacity[h] - self._taken.get(h, 0)

    def ahead(self, sender: int, receiver: int, most: int) -> dict[int, int]:
        """Participants that value from the sender can go on from, with the fewest hops, nearest first."""
        book, found, layer = self._book, {sender: 0}, [sender]
        for distance in range(1, most + 1):
            fresh = []
            for u in layer:
                hop = book.hop[u]
                for v in book.out[u]:
                    if v not in found and v != receiver and self._passes(hop[v]):
                        found[v] = distance
                        fresh.append(v)
            layer = fresh
        return found

    def behind(self, sender: int, receiver: int, most: int) -> dict[int, int]:
        """Participants from whom all that is missing can reach the receiver, with the fewest hops."""
        book, found, layer = self._book, {receiver: 0}, [receiver]
        for distance in range(1, most + 1):
            fresh = []
            for v in layer:
                for u in book.into[v]:
                    h = book.hop[u][v]
                    open_ = self.left(h) >= self._missing if v == receiver else self._passes(h)
                    if u not in found and u != sender and open_:
                        found[u] = distance
                        fresh.append(u)
            layer = fresh
        return found

    def _passes(self, h: int) -> bool:
        return self._book.policy[h].mediates and self.left(h) >= self._missing


def taken_by(found: Found) -> dict[int, int]:
    """What the routes that were found take of each hop."""
    taken: dict[int, int] = {}
    for route in found.routes:
        for h in route.hops:
            taken[h] = taken.get(h, 0) + route.amount
    return taken


def _changes(book: Book, way: Sequence[int], amount: int) -> Cure:
    """All that keeps a way from carrying the amount by itself, in the order of the way."""
    between = {book.people.names[book.creditor[h]] for h in way[:-1]}
    found: list[Change] = []
    for place, h in enumerate(way):
        if book.capacity[h] < amount:
            found.append(Change(h, ChangeKind.RAISE_LIMIT, amount - book.capacity[h]))
        if place < len(way) - 1 and not book.policy[h].mediates:
            found.append(Change(h, ChangeKind.ALLOW_MEDIATION))
        if not between.isdisjoint(book.policy[h].blocked):
            found.append(Change(h, ChangeKind.UNBLOCK))
    return tuple(found)
