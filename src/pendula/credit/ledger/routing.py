"""Ways for a payment: shortest first, ties by the smallest sequence of ids, as many as the amount needs.

A search runs from both ends and meets in the middle: with six hops and five neighbours that is two hundred hops
looked at instead of fifteen thousand. Every look counts as a unit of work, and work is limited instead of time.
"""

from collections.abc import Sequence

from msgspec import Struct

from pendula.credit.ledger.book import Book

Path = tuple[int, ...]
UNLIMITED = 1 << 62


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
    capacity, left = book.capacity, amount
    routes: list[Route] = []
    taken: list[Route] = []
    try:
        while len(routes) < paths:
            way = shortest(book, sender, receiver, hops, work)
            if way is None:
                break
            carried = min(left, *[capacity[h] for h in way])
            routes.append(Route(way, carried))
            left -= carried
            if not left:
                break
            # Only a further search has to see what this route leaves over.
            taken.append(routes[-1])
            for h in way:
                book.widen(h, -carried)
    finally:
        for route in taken:
            for h in route.hops:
                book.widen(h, route.amount)
    return Found(tuple(routes), amount - left)


def shortest(book: Book, sender: int, receiver: int, most: int, work: Work) -> Path | None:
    """The hops of the shortest way with capacity, of ties the one with the smallest ids; None if there is none."""
    capacity = book.capacity
    direct = book.hop[sender].get(receiver)
    work.spend(1)
    if direct is not None and capacity[direct] > 0 and book.live(direct):
        return (direct,)
    way = _meet(book, sender, receiver, most, work)
    # The best way of all, where it is allowed, is the best that is allowed; and where there is none, none is.
    if way is None or allowed(book, way):
        return way
    return _shortest_with_blocks(book, sender, receiver, len(way), most, work)


def allowed(book: Book, way: Path) -> bool:
    """Whether nobody between the ends is blocked by a line of the way."""
    if not book.has_blocked:
        return True
    between = {book.people.names[book.creditor[h]] for h in way[:-1]}
    return all(between.isdisjoint(book.policy[h].blocked) for h in way)


def _meet(book: Book, sender: int, receiver: int, most: int, work: Work) -> Path | None:
    """A way of two hops or more; intermediate participants only over lines that let value through."""
    capacity, hop = book.capacity, book.hop
    # The last hop may end at the receiver over any line.
    last = {u for u in book.into[receiver] if capacity[hop[u][receiver]] > 0}
    work.spend(len(book.into[receiver]))
    return _between(book, book.open_out, book.open_in, (sender, receiver), last, most=most, work=work)


Neighbours = Sequence[tuple[int, ...]]


def _between(
    book: Book, out: Neighbours, into: Neighbours, ends: tuple[int, int], last: set[int], *, most: int, work: Work
) -> Path | None:
    """The shortest way of two hops or more whose last hop begins at one of `last`, the smallest ids of ties.

    Layers are sets, united as a whole; only whether somebody is in one matters, and steps go in the order of ids.
    """
    sender, receiver = ends
    last.discard(sender)
    ahead, behind = [{sender}], [{receiver}, last]
    seen_ahead, seen_behind = {sender, receiver}, {sender, receiver} | last
    near, far = ahead[0], last
    for _ in range(most - 1):
        if len(near) <= len(far):
            ways = [out[node] for node in near]
            near = set().union(*ways)
            near -= seen_ahead
            seen_ahead |= near
            ahead.append(near)
        else:
            ways = [into[node] for node in far]
            far = set().union(*ways)
            far -= seen_behind
            seen_behind |= far
            behind.append(far)
        work.spend(sum(map(len, ways)))
        if not near or not far:
            return None
        if not near.isdisjoint(far):
            return _walk(book, out, into, ahead, behind, common=near & far, work=work)
    return None


def _walk(
    book: Book,
    out: Neighbours,
    into: Neighbours,
    ahead: list[set[int]],
    behind: list[set[int]],
    common: set[int],
    work: Work,
) -> Path:
    """The way with the smallest ids through the layers of a search that has just met at `common`.

    Layers before the meeting are thinned to what leads there; then each step takes the smallest participant.
    """
    layers = [common]
    for layer in reversed(ahead[1:-1]):
        ways = [into[node] for node in layers[-1]]
        work.spend(sum(map(len, ways)))
        layers.append(layer.intersection(set().union(*ways)))
    layers.reverse()
    layers += behind[-2:0:-1]
    (here,), (receiver,) = ahead[0], behind[0]
    way: list[int] = []
    for layer in layers:
        for there in out[here]:
            if there in layer:
                way.append(book.hop[here][there])
                here = there
                break
    way.append(book.hop[here][receiver])
    return tuple(way)


def _shortest_with_blocks(book: Book, sender: int, receiver: int, least: int, most: int, work: Work) -> Path | None:
    """The same where lines forbid participants between the ends: what is allowed depends on the whole way."""
    search = _Blocked(book, receiver, _distances(book, receiver, sender, most, work), work)
    for length in range(least, most + 1):
        way = search.extend(sender, length, [], [], frozenset())
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
                if book.capacity[h] > 0 and u not in found:
                    found[u] = distance
                    if u != sender:
                        fresh.append(u)
        layer = fresh
    return found


class _Blocked:
    """A search for ways of one length that no line of theirs forbids, the smallest ids first."""

    def __init__(self, book: Book, receiver: int, distance: dict[int, int], work: Work) -> None:
        self._book, self._receiver, self._distance, self._work = book, receiver, distance, work

    def extend(
        self, here: int, left: int, way: list[int], between: list[int], blocked: frozenset[str]
    ) -> list[int] | None:
        """The way so far with `left` more hops to the receiver; None if there are none."""
        book, names, receiver = self._book, self._book.people.names, self._receiver
        ways = book.ways_out[here]
        self._work.spend(len(ways))
        for v, h in ways:
            if book.capacity[h] <= 0 or (v == receiver) != (left == 1):
                continue
            forbidden = blocked.union(book.policy[h].blocked)
            if any(names[node] in forbidden for node in between):
                continue
            if v == receiver:
                return [*way, h]
            # The sender is never between; the way stays simple.
            closed = not book.policy[h].mediates or names[v] in forbidden
            if closed or v in between or (way and v == book.debtor[way[0]]):
                continue
            if (not way and v == here) or self._distance.get(v, left) > left - 1:
                continue
            found = self.extend(v, left - 1, [*way, h], [*between, v], forbidden)
            if found is not None:
                return found
        return None


def chain(book: Book, sender: int, receiver: int, most: int) -> Path | None:
    """The shortest chain of live lines, whatever their capacity and policy; None if there is none."""
    if receiver in book.out[sender]:
        return (book.hop[sender][receiver],)
    last = set(book.into[receiver])
    return _between(book, book.out, book.into, (sender, receiver), last, most=most, work=Work(UNLIMITED))
