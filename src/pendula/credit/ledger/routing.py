"""Routes for a payment: shortest first, ties by the smallest sequence of ids, as many as the amount needs.

A search runs from both ends and meets in the middle: with six hops and five neighbours it examines two hundred hops
instead of fifteen thousand. Each examined hop is a unit of work, and work is limited instead of time.
"""

from collections.abc import Sequence

from msgspec import Struct

from pendula.credit.ledger.book import Book

Path = tuple[int, ...]
UNLIMITED = 1 << 62


class WorkSpent(Exception):
    """The search reached its work limit. Internal."""


class Work:
    """A budget of hops to examine."""

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


class FoundRoutes(Struct, frozen=True):
    """Routes and the sum they carry, which is below the requested amount if no more was found."""

    routes: tuple[Route, ...]
    amount: int


def greedy_routes(
    book: Book, sender: int, receiver: int, amount: int, hops: int, paths: int, work: Work
) -> FoundRoutes:
    """Up to `paths` routes, each the shortest in the capacity that the previous ones left."""
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
            # Only another search needs the remaining capacity.
            taken.append(routes[-1])
            for h in way:
                book.widen(h, -carried)
    finally:
        for route in taken:
            for h in route.hops:
                book.widen(h, route.amount)
    return FoundRoutes(tuple(routes), amount - left)


def shortest(book: Book, sender: int, receiver: int, most: int, work: Work) -> Path | None:
    """The shortest route with capacity, ties by the smallest ids; None if there is none."""
    capacity = book.capacity
    direct = book.hop[sender].get(receiver)
    work.spend(1)
    if direct is not None and capacity[direct] > 0 and book.live(direct):
        return (direct,)
    way = _meet(book, sender, receiver, most, work)
    # If the best route of all is allowed, it is the best allowed one; without any route there is no allowed one.
    if way is None or is_allowed(book, way):
        return way
    return _shortest_with_blocks(book, sender, receiver, len(way), most, work)


def is_allowed(book: Book, way: Path) -> bool:
    """Whether no line of the route blocks an intermediate participant."""
    if not book.has_blocked:
        return True
    between = {book.people.names[book.creditor[h]] for h in way[:-1]}
    return all(between.isdisjoint(book.policy[h].blocked) for h in way)


def _meet(book: Book, sender: int, receiver: int, most: int, work: Work) -> Path | None:
    """A route of two hops or more; intermediate participants only over lines that mediate."""
    capacity, hop = book.capacity, book.hop
    # The last hop may end at the receiver over any line.
    last = {u for u in book.into[receiver] if capacity[hop[u][receiver]] > 0}
    work.spend(len(book.into[receiver]))
    return _between(book, book.open_out, book.open_in, (sender, receiver), last, most=most, work=work)


Neighbours = Sequence[tuple[int, ...]]


def _between(
    book: Book, out: Neighbours, into: Neighbours, ends: tuple[int, int], last: set[int], *, most: int, work: Work
) -> Path | None:
    """The shortest route of two hops or more whose last hop begins at one of `last`, the smallest ids of ties.

    Layers are sets used only for membership tests; steps follow the order of ids.
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
    """The route with the smallest ids through the layers of a search that met at `common`.

    Earlier layers are reduced to participants that lead there; then each step takes the smallest participant.
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
    """The shortest route where lines block intermediate participants: what is allowed depends on the whole route."""
    search = _Blocked(book, receiver, _distances(book, receiver, sender, most, work), work)
    for length in range(least, most + 1):
        way = search.extend(sender, length, [], [], frozenset())
        if way is not None:
            return tuple(way)
    return None


def _distances(book: Book, receiver: int, sender: int, most: int, work: Work) -> dict[int, int]:
    """The distance to the receiver in hops, within `most`, ignoring blocked participants."""
    distances, layer = {receiver: 0}, [receiver]
    for distance in range(1, most + 1):
        fresh = []
        for v in layer:
            ways = book.ways_in[v] if v == receiver else book.through_in[v]
            work.spend(len(ways))
            for u, h in ways:
                if book.capacity[h] > 0 and u not in distances:
                    distances[u] = distance
                    if u != sender:
                        fresh.append(u)
        layer = fresh
    return distances


class _Blocked:
    """A search for allowed routes of one length, smallest ids first."""

    def __init__(self, book: Book, receiver: int, distance: dict[int, int], work: Work) -> None:
        self._book, self._receiver, self._distance, self._work = book, receiver, distance, work

    def extend(
        self, here: int, left: int, way: list[int], between: list[int], blocked: frozenset[str]
    ) -> list[int] | None:
        """Extend the route by `left` more hops to the receiver; None if that is impossible."""
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
            # The sender is never an intermediate; routes stay simple.
            closed = not book.policy[h].mediates or names[v] in forbidden
            if closed or v in between or (way and v == book.debtor[way[0]]):
                continue
            if (not way and v == here) or self._distance.get(v, left) > left - 1:
                continue
            route = self.extend(v, left - 1, [*way, h], [*between, v], forbidden)
            if route is not None:
                return route
        return None


def chain(book: Book, sender: int, receiver: int, most: int) -> Path | None:
    """The shortest chain of live lines, whatever their capacity and policy; None if there is none."""
    if receiver in book.out[sender]:
        return (book.hop[sender][receiver],)
    last = set(book.into[receiver])
    return _between(book, book.out, book.into, (sender, receiver), last, most=most, work=Work(UNLIMITED))
