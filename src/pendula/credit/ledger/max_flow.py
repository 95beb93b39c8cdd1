"""Maximum flow between two participants, and exact routing: refuses only payments that no set of routes can carry.

Integer arithmetic, deterministic: arcs are visited in the order of ids. The book is read-only here.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from pendula.credit.ledger.book import Book, Ways
from pendula.credit.ledger.routing import FoundRoutes, Path, Route, Work, greedy_routes, is_allowed


class Flow(Struct, frozen=True):
    """The largest flow in atoms, (hop, amount) by hop, and the smallest cut, of several the one nearest to the sender.

    The capacities of the cut add up to the value; exhausted hops that would lead on to the receiver are part of it.
    """

    value: int
    hops: tuple[tuple[int, int], ...]
    cut: tuple[int, ...]


def max_flow(book: Book, sender: int, receiver: int, work: Work) -> Flow:
    """The maximum flow over live lines, with any number of routes and hops; raises `WorkSpent`.

    Lines that do not mediate lead only to the receiver. Blocked participants are ignored, because blocking depends on
    whole routes and a flow has none; where lines block, the result is an upper bound.
    """
    if sender == receiver:
        return Flow(0, (), ())
    net = _Net(book, sender, receiver, len(book.people), work, exhausted=True)
    flow, value = _send(net, sum(max(0, net.capacity[h]) for _, h in net.out[sender]))
    near = _levels(net, flow)
    cut = sorted(h for u in near for v, h in net.out.get(u, ()) if v not in near)
    hops: dict[int, int] = {}
    for route in _taken_apart(net, flow):
        for h in route.hops:
            hops[h] = hops.get(h, 0) + route.amount
    return Flow(value, tuple(sorted(hops.items())), tuple(cut))


def exact_routes(book: Book, sender: int, receiver: int, amount: int, hops: int, paths: int, work: Work) -> FoundRoutes:
    """Routes that carry the amount, unless no set of up to `paths` routes of at most `hops` hops does.

    Otherwise the result of the greedy search. Exact for any number of routes: every simple route within the hops is
    combined with every set of earlier ones, sets are pruned only by upper bounds, and an integer programme decides how
    a set shares its hops. Up to three routes the bound is exact; beyond, each set costs a programme.

    Raises `WorkSpent`.
    """
    greedy = greedy_routes(book, sender, receiver, amount, hops=hops, paths=paths, work=work)
    if greedy.amount == amount:
        return greedy
    net = _Net(book, sender, receiver, hops, work)
    flow, value = _send(net, amount)
    if value < amount:
        return greedy
    routes = _taken_apart(net, flow)
    if len(routes) <= paths and all(len(route.hops) <= hops and is_allowed(book, route.hops) for route in routes):
        return FoundRoutes(tuple(routes), amount)
    sets = _Sets(net, amount, paths)
    if sets.most(paths) < amount:
        return greedy
    # Skip routes too narrow for any others to compensate.
    for way in _ways(net, max(1, amount - sets.most(paths - 1))):
        better = sets.carried_with(way)
        if better is not None:
            return FoundRoutes(better, amount)
    return greedy


class _Net:
    """The hops on some route of at most `most` hops from the sender to the receiver, by their ends, in order of ids.

    `behind` has the distances to the receiver; `exhausted` includes hops without capacity.
    """

    def __init__(self, book: Book, sender: int, receiver: int, most: int, work: Work, exhausted: bool = False) -> None:
        self.book, self.sender, self.receiver, self.most, self.work = book, sender, receiver, most, work
        self.capacity, self._exhausted = book.capacity, exhausted
        self.behind = self._away(book.ways_in, book.through_in, receiver, sender, most)
        ahead = self._away(book.through_out, book.through_out, sender, receiver, most)
        self.out: dict[int, list[tuple[int, int]]] = {}
        self.into: dict[int, list[tuple[int, int]]] = {}
        for u in sorted(ahead):
            ways = book.ways_out[u]
            work.spend(len(ways))
            self.out[u] = [way for way in ways if self._leads_on(*way, most - ahead[u] - 1)]
            for v, h in self.out[u]:
                self.into.setdefault(v, []).append((u, h))

    def _open(self, h: int) -> bool:
        return self._exhausted or self.capacity[h] > 0

    def _leads_on(self, v: int, h: int, left: int) -> bool:
        if not self._open(h) or self.behind.get(v, left + 1) > left:
            return False
        return v == self.receiver or self.book.policy[h].mediates

    def _away(self, first: Ways, ways: Ways, origin: int, never: int, most: int) -> dict[int, int]:
        """Distances of possible intermediates from the origin; its adjacent hops come from `first`."""
        distances, layer = {origin: 0}, [origin]
        for distance in range(1, most):
            fresh = []
            for node in layer:
                near = first[node] if node == origin else ways[node]
                self.work.spend(len(near))
                for other, h in near:
                    if self._open(h) and other not in distances and other != never:
                        distances[other] = distance
                        fresh.append(other)
            layer = fresh
        return distances

    def left(self, flow: dict[int, int], h: int, sign: int) -> int:
        """The remaining capacity of a hop or, with sign -1, the flow that can be undone."""
        return max(0, self.capacity[h] - flow.get(h, 0)) if sign > 0 else flow.get(h, 0)

    def arcs(self, node: int, flow: dict[int, int]) -> list[tuple[int, int, int]]:
        """Arcs with residual capacity from a node, as (to, hop, sign): forward, then backward along flow."""
        out, into = self.out.get(node, ()), self.into.get(node, ())
        self.work.spend(len(out) + len(into))
        arcs = [*((v, h, 1) for v, h in out), *((u, h, -1) for u, h in into)]
        return [arc for arc in arcs if self.left(flow, *arc[1:])]


def _send(net: _Net, most: int) -> tuple[dict[int, int], int]:
    """A largest flow, by hop, and its value; no more than `most`. Blocking flows on shortest routes (Dinic)."""
    flow: dict[int, int] = {}
    sent = 0
    while sent < most:
        level = _levels(net, flow)
        if net.receiver not in level:
            break
        sent += _blocking(net, flow, level, most - sent)
    return flow, sent


def _levels(net: _Net, flow: dict[int, int]) -> dict[int, int]:
    """Distances from the sender over arcs with residual capacity."""
    level, layer = {net.sender: 0}, [net.sender]
    while layer:
        fresh = []
        for u in layer:
            for v, *_ in net.arcs(u, flow):
                if v not in level:
                    level[v] = level[u] + 1
                    fresh.append(v)
        layer = fresh
    return level


def _blocking(net: _Net, flow: dict[int, int], level: dict[int, int], most: int) -> int:
    """Send along shortest routes until each has a full hop; `flow` grows by it."""
    sent = 0
    # Within a phase routes only lose capacity: skipped arcs stay useless.
    ahead = {u: [arc for arc in net.arcs(u, flow) if level[arc[0]] == level[u] + 1][::-1] for u in level}
    way: list[tuple[int, int, int]] = []
    here = net.sender
    while sent < most:
        if here == net.receiver:
            amount = min(most - sent, *(net.left(flow, h, sign) for _, h, sign in way))
            for _, h, sign in way:
                flow[h] = flow.get(h, 0) + sign * amount
            sent += amount
            way, here = [], net.sender
        arcs = ahead[here]
        while arcs and not net.left(flow, *arcs[-1][1:]):
            arcs.pop()
        net.work.spend(1)
        if arcs:
            v, h, sign = arcs[-1]
            way.append((here, h, sign))
            here = v
        elif way:
            here = way.pop()[0]
            ahead[here].pop()
        else:
            break
    return sent


def _taken_apart(net: _Net, flow: dict[int, int]) -> list[Route]:
    """The flow as routes, shortest and smallest ids first; cycles, which carry nothing, are left out."""
    left, routes = dict(flow), list[Route]()
    while (way := _shortest_in(net, left)) is not None:
        amount = min(left[h] for h in way)
        for h in way:
            left[h] -= amount
        routes.append(Route(way, amount))
    return routes


def _shortest_in(net: _Net, flow: dict[int, int]) -> Path | None:
    behind, layer = {net.receiver: 0}, [net.receiver]
    while layer and net.sender not in behind:
        fresh = []
        for v in layer:
            net.work.spend(len(net.into.get(v, ())))
            for u, h in net.into.get(v, ()):
                if flow.get(h) and u not in behind:
                    behind[u] = behind[v] + 1
                    fresh.append(u)
        layer = fresh
    if net.sender not in behind:
        return None
    way, here = [], net.sender
    while here != net.receiver:
        steps = ((v, h) for v, h in net.out[here] if flow.get(h) and behind.get(v) == behind[here] - 1)
        here, h = next(steps)
        way.append(h)
    return tuple(way)


def _ways(net: _Net, least: int) -> Iterator[Path]:
    """Simple routes within the bound of hops that carry `least`, by length, then by ids."""
    capacity, behind = net.capacity, net.behind
    for length in range(1, min(net.most, len(net.out)) + 1):
        nodes, way = [net.sender], list[int]()
        steps = [iter(net.out[net.sender])]
        while steps:
            step = next(steps[-1], None)
            net.work.spend(1)
            if step is None:
                steps.pop()
                nodes.pop()
                del way[-1:]
                continue
            v, h = step
            left = length - len(nodes)
            if capacity[h] < least or behind[v] > left or (v == net.receiver) != (left == 0):
                continue
            if v == net.receiver:
                if is_allowed(net.book, (*way, h)):
                    yield (*way, h)
            elif v not in nodes:
                nodes.append(v)
                way.append(h)
                steps.append(iter(net.out[v]))


class _Sets:
    """The routes seen so far, and the search for a set of them that carries the amount."""

    def __init__(self, net: _Net, amount: int, paths: int) -> None:
        self._net, self._amount, self._paths = net, amount, paths
        self._ways: list[Path] = []
        self._hops: list[frozenset[int]] = []
        self._widths: list[int] = []
        self._widest = _widest(net, amount)
        ends = net.out[net.sender], net.into[net.receiver]
        self._ends = [sorted((net.capacity[h] for _, h in end), reverse=True) for end in ends]

    def most(self, count: int) -> int:
        """A bound of what `count` routes carry: the widest each, and the widest hops at either end."""
        return min(count * self._widest, *(sum(end[:count]) for end in self._ends))

    def carried_with(self, way: Path) -> tuple[Route, ...] | None:
        """Routes for the amount over the new route and up to `paths` - 1 of those before it; None if there are none."""
        last = len(self._ways)
        self._ways.append(way)
        self._hops.append(frozenset(way))
        self._widths.append(min(self._net.capacity[h] for h in way))
        if last < self._paths:
            # Surplus routes are harmless.
            return self._routes(range(last + 1), sum(self._widths))
        chosen, bounds, following = [last], [self._widths[last]], 0
        while True:
            missing = self._paths - len(chosen)
            if not missing:
                routes = self._routes(sorted(chosen), bounds[-1])
                if routes is not None:
                    return routes
            elif following < last and bounds[-1] + missing * self._widest >= self._amount:
                bound = self._bound(chosen, bounds[-1], following)
                if bound + (missing - 1) * self._widest >= self._amount:
                    chosen.append(following)
                    bounds.append(bound)
                following += 1
                continue
            if len(chosen) == 1:
                return None
            following = chosen.pop() + 1
            bounds.pop()

    def _bound(self, chosen: Sequence[int], before: int, new: int) -> int:
        """An upper bound for the chosen routes and a new one; exact for up to three routes."""
        self._net.work.spend(1)
        if len(chosen) == 1:
            return self._pair(chosen[0], new)
        return self._three(chosen[0], chosen[1], new, before) if len(chosen) == 2 else before + self._widths[new]

    def _pair(self, a: int, b: int) -> int:
        return self._shared(self._hops[a] & self._hops[b], self._widths[a] + self._widths[b])

    def _shared(self, hops: frozenset[int], most: int) -> int:
        return min(most, *(self._net.capacity[h] for h in hops)) if hops else most

    def _three(self, a: int, b: int, c: int, ab: int) -> int:
        """Three routes, two and two sharing hops: three sums count every route twice, hence the half, rounded down."""
        ac, bc, width = self._pair(a, c), self._pair(b, c), self._widths
        most = min(ab + width[c], ac + width[b], bc + width[a], (ab + ac + bc) // 2)
        return self._shared(self._hops[a] & self._hops[b] & self._hops[c], most)

    def _routes(self, chosen: Sequence[int], bound: int) -> tuple[Route, ...] | None:
        ways = [self._ways[place] for place in chosen]
        enough = bound >= self._amount
        carried = shares(ways, self._net.capacity, self._amount, self._net.work) if enough else None
        if carried is None:
            return None
        return tuple(Route(way, share) for way, share in zip(ways, carried, strict=True) if share)


def _widest(net: _Net, amount: int) -> int:
    """The maximum that a single route within the hops carries, capped at the amount."""
    width = {net.sender: amount}
    for _ in range(min(net.most, len(net.out))):
        wider = dict(width)
        for u, through in width.items():
            net.work.spend(len(net.out.get(u, ())))
            for v, h in net.out.get(u, ()):
                wider[v] = max(wider.get(v, 0), min(through, net.capacity[h]))
        width = wider
    return width.get(net.receiver, 0)


def shares(ways: Sequence[Path], capacity: Sequence[int], amount: int, work: Work) -> list[int] | None:
    """Shares of the routes that add up to the amount without overdrawing a hop; None if impossible.

    Branch and bound over the relaxed programme: a share that is no whole number is either less or more.
    """
    users: dict[int, int] = {}
    for place, way in enumerate(ways):
        for h in way:
            users[h] = users.get(h, 0) | 1 << place
    caps: dict[int, int] = {}
    for h, mask in users.items():
        caps[mask] = min(capacity[h], caps.get(mask, capacity[h]))
    cases = [(caps, [0] * len(ways))]
    while cases:
        caps, sure = cases.pop()
        relaxed = _relaxed(caps, len(ways), work)
        if sum(sure) + sum(relaxed) < amount:
            continue
        whole = [least + int(more) for least, more in zip(sure, relaxed, strict=True)]
        if sum(whole) >= amount:
            return _trimmed(whole, sum(whole) - amount)
        place = next(place for place, share in enumerate(relaxed) if share.denominator > 1)
        less = int(relaxed[place])
        cases.append((caps | {1 << place: less}, sure))
        rest = {mask: cap - (less + 1) * (mask >> place & 1) for mask, cap in caps.items()}
        if min(rest.values()) >= 0:
            cases.append((rest, [share + (less + 1) * (one == place) for one, share in enumerate(sure)]))
    return None


def _trimmed(shares: list[int], excess: int) -> list[int]:
    """Reduce the shares by `excess`, starting from the last routes, which are the longest."""
    for place in reversed(range(len(shares))):
        less = min(shares[place], excess)
        shares[place] -= less
        excess -= less
    return shares


def _relaxed(caps: dict[int, int], count: int, work: Work) -> list[Fraction]:
    """Shares, whole or not, of the largest sum, those of each mask within its cap (simplex with Bland's rule)."""
    masks = sorted(caps)
    # Each row: its basic variable is the last number less the others times the variables of the columns.
    rows = [[*(Fraction(mask >> place & 1) for place in range(count)), Fraction(caps[mask])] for mask in masks]
    gain = [Fraction(1)] * count + [Fraction(0)]
    column, basic = list(range(count)), list(range(count, count + len(masks)))
    while any(value > 0 for value in gain[:count]):
        enter = min((j for j in range(count) if gain[j] > 0), key=lambda j: column[j])
        open_rows = [i for i, row in enumerate(rows) if row[enter] > 0]
        leave = min(open_rows, key=lambda i: (rows[i][count] / rows[i][enter], basic[i]))
        work.spend(count * len(rows))
        pivot = rows[leave][enter]
        rows[leave][enter] = Fraction(1)
        rows[leave] = turned = [value / pivot for value in rows[leave]]
        for row in [*rows[:leave], *rows[leave + 1 :], gain]:
            factor, row[enter] = row[enter], Fraction(0)
            if factor:
                row[:] = [value - factor * other for value, other in zip(row, turned, strict=True)]
        column[enter], basic[leave] = basic[leave], column[enter]
    values = dict(zip(basic, (row[count] for row in rows), strict=True))
    return [values.get(place, Fraction(0)) for place in range(count)]
