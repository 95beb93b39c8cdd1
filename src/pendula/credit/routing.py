"""Ways for a payment: shortest first, ties by the smallest sequence of ids, as many as the amount needs.

A search runs from both ends and meets in the middle: with six hops and five neighbours that is two hundred hops
looked at instead of fifteen thousand. Every look counts as a unit of work, and work is limited instead of time.
"""

from msgspec import Struct

from pendula.credit.ledger import Book

Path = tuple[int, ...]
Layers = list[dict[int, None]]


class WorkSpent(Exception):
    """The search looked at more hops than it may; a value for the caller, never for a user."""


class Work:
    """How many hops may still be looked at."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.left = limit

    def spend(self, units: int) -> None:
        self.left -= units
        if self.left < 0:
            raise WorkSpent

    @property
    def spent(self) -> int:
        return self.limit - self.left


class Route(Struct, frozen=True):
    """Hops by the numbers of their lines, and the amount in atoms."""

    hops: tuple[int, ...]
    amount: int


class Found(Struct, frozen=True):
    """Routes, and the sum they carry; less than what was asked for means that no more was found."""

    routes: tuple[Route, ...]
    amount: int


def greedy_routes(book: Book, sender: int, receiver: int, amount: int, hops: int, paths: int, work: Work) -> Found:
    """Up to `paths` routes, each the shortest in what the ones before left over."""
    room, left = book.room, amount
    routes: list[Route] = []
    try:
        while left and len(routes) < paths:
            way = shortest(book, sender, receiver, hops, work)
            if way is None:
                break
            carried = min(left, *(room[h] for h in way))
            for h in way:
                room[h] -= carried
            routes.append(Route(way, carried))
            left -= carried
    finally:
        for route in routes:
            for h in route.hops:
                room[h] += route.amount
    return Found(tuple(routes), amount - left)


def shortest(book: Book, sender: int, receiver: int, most: int, work: Work) -> Path | None:
    """The hops of the shortest way with capacity, of ties the one with the smallest ids; None if there is none."""
    if book.has_blocked:
        return _shortest_with_blocks(book, sender, receiver, most, work)
    room = book.room
    direct = book.hop[sender].get(receiver)
    work.spend(1)
    if direct is not None and room[direct] > 0 and book.live(direct):
        return (direct,)
    return _meet(book, sender, receiver, most, work)


def _meet(book: Book, sender: int, receiver: int, most: int, work: Work) -> Path | None:
    """A way of two hops or more; intermediate participants only over lines that let value through."""
    room = book.room
    ahead: Layers = [{sender: None}]
    behind: Layers = [{receiver: None}]
    seen_ahead, seen_behind = {sender, receiver}, {receiver, sender}
    through_out, through_in, looked = book.through_out, book.through_in, 0
    while len(ahead) + len(behind) - 2 < most:
        fresh: dict[int, None] = {}
        if len(behind) == 1 or len(behind[-1]) < len(ahead[-1]):
            # The last hop may end at the receiver over any line.
            ways = book.ways_in if len(behind) == 1 else through_in
            for v in behind[-1]:
                for u, h in ways[v]:
                    if room[h] > 0 and u not in seen_behind:
                        seen_behind.add(u)
                        fresh[u] = None
                looked += len(ways[v])
            behind.append(fresh)
            other = seen_ahead if len(ahead) > 1 else ()
        else:
            for u in ahead[-1]:
                for v, h in through_out[u]:
                    if room[h] > 0 and v not in seen_ahead:
                        seen_ahead.add(v)
                        fresh[v] = None
                looked += len(through_out[u])
            ahead.append(fresh)
            other = seen_behind
        if not fresh:
            work.spend(looked)
            return None
        common = [node for node in fresh if node in other]
        if common:
            work.spend(looked)
            return _walk(book, ahead, behind, sorted(common), work)
    work.spend(looked)
    return None


def _walk(
    book: Book, ahead: list[dict[int, None]], behind: list[dict[int, None]], common: list[int], work: Work
) -> Path:
    """The way with the smallest ids through the layers of a search that has just met at `common`.

    Layers before the meeting are thinned to what leads there; then each step takes the smallest participant.
    """
    room, hop = book.room, book.hop
    thinned: Layers = [dict.fromkeys(common)]
    looked = 0
    for layer in reversed(ahead[1:-1]):
        onward: dict[int, None] = {}
        for v in thinned[-1]:
            for u, h in book.through_in[v]:
                if room[h] > 0 and u in layer:
                    onward[u] = None
            looked += len(book.through_in[v])
        thinned.append(onward)
    layers = [*reversed(thinned), *reversed(behind[:-1])]
    way: list[int] = []
    here = next(iter(ahead[0]))
    for number, layer in enumerate(layers):
        last = number == len(layers) - 1
        ways = book.ways_out[here] if last else book.through_out[here]
        looked += len(ways)
        if last:
            receiver = next(iter(layer))
            way.append(hop[here][receiver])
            break
        for v, h in ways:
            if v in layer and room[h] > 0:
                way.append(h)
                here = v
                break
    work.spend(looked)
    return tuple(way)


def _shortest_with_blocks(book: Book, sender: int, receiver: int, most: int, work: Work) -> Path | None:
    """The same where lines forbid participants between the ends: what is allowed depends on the whole way."""
    names = book.people.names
    distance = _distances(book, receiver, sender, most, work)
    for length in range(1, most + 1):
        way = _search(book, sender, receiver, length, [], [], frozenset(), distance, names, work)
        if way is not None:
            return tuple(way)
    return None


def _distances(book: Book, receiver: int, sender: int, most: int, work: Work) -> dict[int, int]:
    """Hops to the receiver for everybody near enough, blocked participants not considered."""
    found, layer = {receiver: 0}, [receiver]
    for distance in range(1, most + 1):
        fresh = []
        for v in layer:
            ways = book.ways_in[v] if v == receiver else book.through_in[v]
            work.spend(len(ways))
            for u, h in ways:
                if book.room[h] > 0 and u not in found:
                    found[u] = distance
                    if u != sender:
                        fresh.append(u)
        layer = fresh
    return found


def _search(
    book: Book,
    here: int,
    receiver: int,
    left: int,
    way: list[int],
    between: list[int],
    blocked: frozenset[str],
    distance: dict[int, int],
    names: list[str],
    work: Work,
) -> list[int] | None:
    ways = book.ways_out[here]
    work.spend(len(ways))
    for v, h in ways:
        if book.room[h] <= 0 or (v == receiver) != (left == 1):
            continue
        forbidden = blocked.union(book.policy[h].blocked)
        if any(names[node] in forbidden for node in between):
            continue
        if v == receiver:
            return [*way, h]
        # The sender is never between; the way stays simple.
        if not book.policy[h].mediates or names[v] in forbidden or v in between or (way and v == book.debtor[way[0]]):
            continue
        if (not way and v == here) or distance.get(v, left) > left - 1:
            continue
        found = _search(book, v, receiver, left - 1, [*way, h], [*between, v], forbidden, distance, names, work)
        if found is not None:
            return found
    return None


def chain(book: Book, sender: int, receiver: int, most: int) -> Path | None:
    """The shortest chain of live lines, whatever their capacity and policy; None if there is none."""
    came: dict[int, int] = {sender: -1}
    layer = [sender]
    for _ in range(most):
        fresh = []
        for u in layer:
            for v, h in book.ways_out[u]:
                if v not in came:
                    came[v] = h
                    fresh.append(v)
        if receiver in came:
            way: list[int] = []
            node = receiver
            while node != sender:
                way.append(came[node])
                node = book.debtor[came[node]]
            return tuple(reversed(way))
        layer = fresh
    return None
