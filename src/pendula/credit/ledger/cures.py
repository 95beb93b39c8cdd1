"""Changes of lines that would let a refused payment pass: as few as possible, and each answer is verified.

A line can be an obstacle in three ways: too little capacity, no mediation, or an intermediate participant it blocks. A
single change is searched first. If one is not enough, or does not help because routing is greedy, the cure lists all
changes along one route that then carries the whole amount alone: such a route always exists.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.routing import FoundRoutes, Path

Trial = Callable[[], bool]


class ChangeKind(StrEnum):
    """The kind of change of a line."""

    RAISE_LIMIT = "raise_limit"
    ALLOW_MEDIATION = "allow_mediation"
    UNBLOCK = "unblock"


class Change(NamedTuple):
    """A line by its number, the kind of change, and for a limit the amount in atoms."""

    hop: int
    kind: ChangeKind
    by: int = 0


Cure = tuple[Change, ...]


class Payment(NamedTuple):
    """A refused payment, the routes found for it, and the maximum of hops."""

    sender: int
    receiver: int
    amount: int
    found: FoundRoutes
    hops: int


def cure_of(book: Book, payment: Payment, chain: Path, passes: Trial) -> Cure:
    """The changes that let the payment pass; `chain` is the shortest chain of live lines, `passes` reruns routing."""
    single = _one_change(book, payment)
    if single is not None and _helps(book, (single,), passes):
        return (single,)
    # Once changed, both carry the whole amount alone, and both are the first that a search finds: the chain because
    # nothing is shorter; the first route because wider hops open no new routes.
    ways = [route.hops for route in payment.found.routes[:1]] + [chain]
    return min((_changes(book, way, payment.amount) for way in ways), key=len)


def _helps(book: Book, cure: Cure, passes: Trial) -> bool:
    """Whether the payment passes with these changes, which are reverted."""
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
    """Apply the change to capacities and policies of a book; limits stay as they are."""
    policy = book.policy[change.hop]
    match change.kind:
        case ChangeKind.RAISE_LIMIT:
            book.widen(change.hop, change.by)
        case ChangeKind.ALLOW_MEDIATION:
            book.set_policy(change.hop, msgspec.structs.replace(policy, mediates=True))
        case ChangeKind.UNBLOCK:
            book.set_policy(change.hop, msgspec.structs.replace(policy, blocked=()))


def _one_change(book: Book, payment: Payment) -> Change | None:
    """The single line whose change connects sender and receiver, on the shortest route.

    Ties go to a limit before a permission, then to the smallest ids: a permission opens a line to all payments.
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
    """Reachability over hops with capacity for the missing amount beside the found routes."""

    def __init__(self, book: Book, missing: int, taken: Mapping[int, int]) -> None:
        self._book, self._missing, self._taken = book, missing, taken

    def left(self, h: int) -> int:
        return self._book.capacity[h] - self._taken.get(h, 0)

    def ahead(self, sender: int, receiver: int, most: int) -> dict[int, int]:
        """Participants reachable from the sender that can mediate, with their distance, nearest first."""
        book, distances, layer = self._book, {sender: 0}, [sender]
        for distance in range(1, most + 1):
            fresh = []
            for u in layer:
                hop = book.hop[u]
                for v in book.out[u]:
                    if v not in distances and v != receiver and self._passes(hop[v]):
                        distances[v] = distance
                        fresh.append(v)
            layer = fresh
        return distances

    def behind(self, sender: int, receiver: int, most: int) -> dict[int, int]:
        """Participants from which the missing amount can reach the receiver, with their distance."""
        book, distances, layer = self._book, {receiver: 0}, [receiver]
        for distance in range(1, most + 1):
            fresh = []
            for v in layer:
                for u in book.into[v]:
                    h = book.hop[u][v]
                    open_ = self.left(h) >= self._missing if v == receiver else self._passes(h)
                    if u not in distances and u != sender and open_:
                        distances[u] = distance
                        fresh.append(u)
            layer = fresh
        return distances

    def _passes(self, h: int) -> bool:
        return self._book.policy[h].mediates and self.left(h) >= self._missing


def taken_by(payment: FoundRoutes) -> dict[int, int]:
    """The amount that the found routes take of each hop."""
    taken: dict[int, int] = {}
    for route in payment.routes:
        for h in route.hops:
            taken[h] = taken.get(h, 0) + route.amount
    return taken


def _changes(book: Book, way: Sequence[int], amount: int) -> Cure:
    """All changes a route needs to carry the amount alone, in its order."""
    between = {book.people.names[book.creditor[h]] for h in way[:-1]}
    changes: list[Change] = []
    for place, h in enumerate(way):
        if book.capacity[h] < amount:
            changes.append(Change(h, ChangeKind.RAISE_LIMIT, amount - book.capacity[h]))
        if place < len(way) - 1 and not book.policy[h].mediates:
            changes.append(Change(h, ChangeKind.ALLOW_MEDIATION))
        if not between.isdisjoint(book.policy[h].blocked):
            changes.append(Change(h, ChangeKind.UNBLOCK))
    return tuple(changes)
