"""The cheapest way for one truck: integer costs, deterministic ties.

A state is the edge by which a truck arrived, so that turns are counted. For every destination one tree holds the cost
from every state; a route follows the tree to its root. Costs compare by time, then length, then the sequence of edge
keys: edges are numbered in the order of their keys, so the smallest number wins.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from pendula.fleet.map.geometry import turn_urad
from pendula.fleet.map.network import truck_yaw
from pendula.fleet.map.site import CompiledMap
from pendula.fleet.map.trucks import RobotProfile
from pendula.fleet.model import MoveStyle
from pendula.fleet.units import MILLION, angle_femto, half_up
from pendula.kernel.engine import Refusal

# Goal-directed search (A*) with an admissible lower bound, which visits a small part of the map.
# It finds all cheapest ways, not one of them, so that ties are broken as in a complete tree.


def guided_costs(
    starts: Sequence[tuple[int, int]],
    ends: Set[int],
    least: Sequence[int | None],
    onward: Callable[[int], Iterable[tuple[int, int]]],
) -> dict[int, int]:
    """For every edge of a cheapest way the cost from its end to the goal; empty if there is no way.

    `starts` are edges with the cost to their ends, `ends` the edges that arrive at the goal. `least` is a consistent
    lower bound of the cost from every edge to the goal, None where there is no way. `onward` gives the edges that
    follow an edge, with the cost of each step, which is positive.
    """
    costs: dict[int, int] = {}
    queue: list[tuple[int, int]] = []
    came: dict[int, list[tuple[int, int]]] = {}

    def reach(edge: int, cost: int) -> None:
        left = least[edge]
        if left is not None and (edge not in costs or cost < costs[edge]):
            costs[edge] = cost
            heappush(queue, (cost + left, edge))

    for edge, cost in starts:
        reach(edge, cost)
    best: int | None = None
    while queue and (best is None or queue[0][0] <= best):
        whole, edge = heappop(queue)
        if whole != costs[edge] + (least[edge] or 0):
            continue
        if edge in ends:
            best = whole
            continue
        for after, step in onward(edge):
            came.setdefault(after, []).append((edge, step))
            reach(after, costs[edge] + step)
    return (
        {}
        if best is None
        else _walk_back(best, [edge for edge in sorted(ends) if costs.get(edge) == best], costs, came)
    )


def _walk_back(
    best: int, arriving: list[int], costs: Mapping[int, int], came: Mapping[int, list[tuple[int, int]]]
) -> dict[int, int]:
    """The remaining cost from every edge of the cheapest ways."""
    left = dict.fromkeys(arriving, 0)
    while arriving:
        edge = arriving.pop()
        for before, step in came.get(edge, ()):
            if before not in left and costs[before] + step == costs[edge]:
                left[before] = best - costs[before]
                arriving.append(before)
    return left


# Time and length are packed into one number; lengths are below this factor, so time is compared first.
_LENGTHS = 1 << 44
_MOST_TREES = 4096
_MOST_DETOURS = 1024


@dataclass(frozen=True, slots=True)
class OnEdge:
    """A pivot position on an edge."""

    edge: int
    s_um: int


@dataclass(frozen=True, slots=True)
class AtNode:
    """A pivot in a node; the yaw, if known, determines the cost of the first turn."""

    node: int
    yaw_urad: int | None = None


Anchor: TypeAlias = OnEdge | AtNode


@dataclass(frozen=True, slots=True)
class Closed:
    """Edges closed to a route, and nodes in which it must neither turn nor stop. A truck that already stands in such a
    node has arrived there."""

    edges: frozenset[int] = field(default_factory=frozenset)
    turns: frozenset[int] = field(default_factory=frozenset)
    # If this truck differs from all others only in the edges of its own dead end: the common closure, and these edges.
    # The trees of the common closure then serve this truck too.
    common: "Closed | None" = field(default=None, compare=False)
    home: frozenset[int] = field(default_factory=frozenset, compare=False)
    # The permanent part of the closure: its trees exist already and are lower bounds.
    usual: "Closed | None" = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return bool(self.edges or self.turns)


@dataclass(frozen=True, slots=True)
class Way:
    """The edges of a route in order; the first one is that of the anchor if the anchor is on an edge."""

    edges: tuple[int, ...]
    cost_us: int
    # The turn at the start if it is in a node, then the turn after every edge but the last.
    turns_urad: tuple[int, ...]


class _FirstStep(NamedTuple):
    """The first step of the cheapest way from a node: the packed cost, the edge, and the turn into it."""

    key: int
    edge: int
    turn: int
    tree: Sequence[int | None]


OPEN = Closed()


class Planner:
    """Routes for trucks of one profile on one map. `penalties_us` are extra costs of edges. Only caches are mutable."""

    def __init__(
        self,
        site: CompiledMap,
        profile: RobotProfile,
        reverse_milli: int = 1500,
        penalties_us: Mapping[int, int] | None = None,
    ) -> None:
        self.site = site
        self.profile = profile
        self._reverse_milli = reverse_milli
        edges = site.network.edges
        more = penalties_us or {}
        self._penalties = [edge.penalty_ms * 1000 + more.get(i, 0) for i, edge in enumerate(edges)]
        # Edges that trucks of this type may not use.
        self._barred = frozenset(
            i
            for i, edge in enumerate(edges)
            if edge.allowed_profiles and profile.profile_id not in edge.allowed_profiles
        )
        self._edge_us = [self.drive_us(i, edges[i].path.length_um) for i in range(len(edges))]
        self._length = [edge.path.length_um for edge in edges]
        moves = site.transitions
        self._first: list[int] = moves.first.tolist()
        self._out: list[int] = moves.out.tolist()
        self._turns: list[int] = moves.turn_urad.tolist()
        self._tangent: list[bool] = moves.tangent.tolist()
        turn_us = [
            0 if tangent else self.turn_us(turn) for tangent, turn in zip(self._tangent, self._turns, strict=True)
        ]
        # The cost of the turn out of one edge and of driving the next to its end.
        self._step = [
            (turn + self._edge_us[out]) * _LENGTHS + self._length[out]
            for turn, out in zip(turn_us, self._out, strict=True)
        ]
        self._before: list[list[tuple[int, int]]] = [[] for _ in edges]
        for edge in range(len(edges)):
            for k in range(self._first[edge], self._first[edge + 1]):
                self._before[self._out[k]].append((edge, k))
        self._trees: dict[tuple[int, Closed], list[int | None]] = {}
        self._detours: dict[tuple[int, Closed], list[int | None]] = {}
        # The planner whose trees are lower bounds for this one, if this one has no trees.
        self._guide: Planner | None = None

    def with_extra_costs(self, more_us: Mapping[int, int], *, once: bool = False) -> "Planner":
        """A planner with extra costs of some edges; it shares everything but the trees with this one. With `once` it
        grows no trees: the trees of this planner are lower bounds that guide its searches."""
        if not more_us:
            return self
        twin = copy(self)
        twin._penalties, twin._edge_us, twin._step = self._penalties.copy(), self._edge_us.copy(), self._step.copy()
        for edge, more in more_us.items():
            twin._penalties[edge] += more
            twin._edge_us[edge] += more
            for _, k in self._before[edge]:
                twin._step[k] += more * _LENGTHS
        twin._trees, twin._detours = {}, {}
        twin._guide = self if once else None
        return twin

    def drive_us(self, edge: int, length_um: int) -> int:
        """The time for a part of an edge at `vMax` or at the limit of the edge, rounded half up, plus penalties."""
        directed = self.site.network.edges[edge]
        slow = self._reverse_milli if directed.style is MoveStyle.BACKWARD else 1000
        limit = self.profile.v_max_um_s if directed.max_speed_um_s is None else directed.max_speed_um_s
        time = half_up(length_um * MILLION * slow, min(self.profile.v_max_um_s, limit) * 1000)
        return time + self._penalties[edge]

    def edge_us(self, edge: int) -> int:
        """`drive_us` of a whole edge, precomputed."""
        return self._edge_us[edge]

    def turn_us(self, turn: int) -> int:
        return half_up(angle_femto(turn), self.profile.turn_rate_urad_s * 1000)

    def usable(self, edge: int, closed: Closed = OPEN) -> bool:
        """Whether trucks of this type may drive an edge."""
        return edge not in closed.edges and edge not in self._barred

    def after(self, edge: int) -> list[int]:
        """The edges that may follow one at its end."""
        return [self._out[k] for k in self._moves(edge, OPEN)]

    def prepare(self, goals: Iterator[int] | list[int]) -> None:
        """Compute the trees of these destinations ahead of time."""
        for goal in goals:
            self._cached_tree(goal, OPEN)

    def forget(self) -> None:
        """Free the memory of all trees; each has a number for every edge of the map."""
        self._trees.clear()
        self._detours.clear()

    def way(self, start: Anchor, goal: int, closed: Closed = OPEN) -> Way | Refusal:
        """The cheapest way from an anchor to a node; `NO_ROUTE` if there is none.

        From the middle of an edge it continues to the end of that edge even if it is closed: the truck is already on
        it.
        """
        match start:
            case OnEdge(edge, s_um):
                return self._from_edge(edge, s_um, goal, closed)
            case AtNode(node, yaw):
                return self._from_node(node, yaw, goal, closed)

    def cost_us(self, start: Anchor, goal: int, closed: Closed = OPEN) -> int | None:
        """The cost of the cheapest way, without building the way."""
        match start:
            case OnEdge(edge, s_um):
                there = s_um >= self._length[edge] and self.site.network.edges[edge].end == goal
                rest = self._cost_after_us(edge, goal, closed) if there else self.onward_us(edge, goal, closed)
                return None if rest is None else self.drive_us(edge, self._length[edge] - s_um) + rest
            case AtNode(node, yaw):
                if node == goal:
                    return 0
                best = None if goal in closed.turns else self._best(node, yaw, goal, closed)
                return None if best is None else best.key // _LENGTHS

    def onward_us(self, edge: int, goal: int, closed: Closed = OPEN) -> int | None:
        """The cost of the way after the end of an edge."""
        return None if goal in closed.turns else self._cost_after_us(edge, goal, closed)

    def _cost_after_us(self, edge: int, goal: int, closed: Closed) -> int | None:
        key = self._tree(goal, closed, [(edge, 0)])[edge]
        return None if key is None else key // _LENGTHS

    def onward(self, edge: int, goal: int, closed: Closed = OPEN) -> Way | Refusal:
        """The way after the end of an edge, without the edge itself."""
        if goal in closed.turns:
            return self._no_route(goal, closed)
        return self._way_after(edge, goal, closed)

    def _way_after(self, edge: int, goal: int, closed: Closed) -> Way | Refusal:
        tree = self._tree(goal, closed, [(edge, 0)])
        key = tree[edge]
        if key is None:
            return self._no_route(goal, closed)
        edges, turns = self._walk(edge, goal, tree, closed)
        return Way(tuple(edges), key // _LENGTHS, tuple(turns))

    def _from_edge(self, edge: int, s_um: int, goal: int, closed: Closed) -> Way | Refusal:
        there = s_um >= self._length[edge] and self.site.network.edges[edge].end == goal
        rest = self._way_after(edge, goal, closed) if there else self.onward(edge, goal, closed)
        if isinstance(rest, Refusal):
            return rest
        left = self._length[edge] - s_um
        return Way((edge, *rest.edges), self.drive_us(edge, left) + rest.cost_us, (0, *rest.turns_urad))

    def _from_node(self, node: int, yaw: int | None, goal: int, closed: Closed) -> Way | Refusal:
        if node == goal:
            return Way((), 0, ())
        if goal in closed.turns:
            return self._no_route(goal, closed)
        best = self._best(node, yaw, goal, closed)
        if best is None:
            return self._no_route(goal, closed)
        edges, turns = self._walk(best.edge, goal, best.tree, closed)
        return Way((best.edge, *edges), best.key // _LENGTHS, (best.turn, *turns))

    def _best(self, node: int, yaw: int | None, goal: int, closed: Closed) -> "_FirstStep | None":
        """The edge by which the cheapest way leaves a node."""
        starts = list(self._starts(node, yaw, closed))
        tree = self._tree(goal, closed, [(edge, key) for edge, key, _ in starts])
        best: _FirstStep | None = None
        for edge, begun, turn in starts:
            after = tree[edge]
            # Edges are in the order of their keys, so the first of equal costs wins.
            if after is not None and (best is None or begun + after < best.key):
                best = _FirstStep(begun + after, edge, turn, tree)
        return best

    def _starts(self, node: int, yaw: int | None, closed: Closed) -> Iterator[tuple[int, int, int]]:
        """The edges by which a truck may leave a node, with the packed cost to the end of each, and the turn."""
        turning = self.site.network.nodes[node].turning
        for edge in self.site.network.outgoing[node]:
            turn = self._first_turn(edge, yaw)
            sharp = abs(turn) > self.site.params.tangent_eps_urad
            if edge in closed.edges or edge in self._barred or (sharp and (node in closed.turns or not turning)):
                continue
            cost = self._edge_us[edge] + self.first_turn_us(edge, yaw)
            yield edge, cost * _LENGTHS + self._length[edge], turn

    def first_turn_us(self, edge: int, yaw: int | None) -> int:
        """The time to turn from a yaw to the start of an edge; 0 if the turn is tangent or the yaw unknown."""
        turn = self._first_turn(edge, yaw)
        return self.turn_us(turn) if abs(turn) > self.site.params.tangent_eps_urad else 0

    def _first_turn(self, edge: int, yaw: int | None) -> int:
        directed = self.site.network.edges[edge]
        return 0 if yaw is None else turn_urad(yaw, truck_yaw(directed.path.yaws[0][0], directed.style))

    def _walk(self, edge: int, goal: int, tree: Sequence[int | None], closed: Closed) -> tuple[list[int], list[int]]:
        edges: list[int] = []
        turns: list[int] = []
        ends = self.site.network.edges
        # A route ends when it first arrives at its goal, even if a cheapest way would pass the goal again.
        while ends[edge].end != goal:
            key, best = tree[edge], -1
            assert key is not None
            for k in self._moves(edge, closed):
                after = tree[self._out[k]]
                if after is not None and after + self._step[k] == key:
                    best = k
                    break
            assert best >= 0
            edge = self._out[best]
            edges.append(edge)
            turns.append(self._turns[best])
        return edges, turns

    def _moves(self, edge: int, closed: Closed) -> Iterator[int]:
        """Transitions out of an edge, in the order of the edge keys."""
        bound = closed.turns and self.site.network.edges[edge].end in closed.turns
        for k in range(self._first[edge], self._first[edge + 1]):
            out = self._out[k]
            if out not in closed.edges and out not in self._barred and not (bound and not self._tangent[k]):
                yield k

    def _tree(self, goal: int, closed: Closed, starts: Sequence[tuple[int, int]]) -> Sequence[int | None]:
        """For every edge the packed cost from its end to the goal; None where there is no way. A planner without trees
        has values only for the cheapest ways from `starts`."""
        if self._guide is not None:
            least = self._guide._tree(goal, closed.usual or closed, starts)
            return self._guided_tree(least, goal, closed, starts)
        if closed.common is not None and not self._at_home(goal, closed):
            shared = self._cached_tree(goal, closed.common)
            return self._with_home(shared, closed) if any(edge in closed.home for edge, _ in starts) else shared
        return self._cached_tree(goal, closed)

    def _guided_tree(
        self, least: Sequence[int | None], goal: int, closed: Closed, starts: Sequence[tuple[int, int]]
    ) -> list[int | None]:
        ends = frozenset(self.site.network.incoming[goal])
        costs: list[int | None] = [None] * len(least)
        onward = partial(self._onward, closed=closed)
        for edge, cost in guided_costs(starts, ends, least, onward).items():
            costs[edge] = cost
        return costs

    def _onward(self, edge: int, closed: Closed) -> list[tuple[int, int]]:
        return [(self._out[k], self._step[k]) for k in self._moves(edge, closed)]

    def _cached_tree(self, goal: int, closed: Closed) -> list[int | None]:
        trees, most = (self._detours, _MOST_DETOURS) if closed else (self._trees, _MOST_TREES)
        tree = trees.get((goal, closed))
        if tree is None:
            if len(trees) >= most:
                # Evict the oldest; clearing the cache would recompute all of them.
                del trees[next(iter(trees))]
            tree = trees[goal, closed] = self._grow(goal, closed)
        return tree

    def _at_home(self, goal: int, closed: Closed) -> bool:
        """Whether a goal is in the own dead end of the truck, which the common trees do not reach."""
        return any(edge in closed.home for edge in self.site.network.outgoing[goal])

    def _with_home(self, tree: list[int | None], closed: Closed) -> list[int | None]:
        """The common tree extended by the ways out of the own dead end. Other values stay the same: no way leads
        through a dead end."""
        costs = tree.copy()
        home = closed.home - self._barred
        queue = [(key, edge) for edge in sorted(home) if (key := costs[edge]) is not None]
        heapify(queue)
        while queue:
            key, edge = heappop(queue)
            if costs[edge] != key:
                continue
            bound = self.site.network.edges[edge].start in closed.turns
            for before, k in self._before[edge]:
                if before not in home or (bound and not self._tangent[k]):
                    continue
                value, old = key + self._step[k], costs[before]
                if old is None or value < old:
                    costs[before] = value
                    heappush(queue, (value, before))
        return costs

    def _grow(self, goal: int, closed: Closed) -> list[int | None]:
        ends = self.site.network.edges
        best: list[int | None] = [None] * len(ends)
        queue: list[tuple[int, int]] = []
        for edge in self.site.network.incoming[goal]:
            best[edge] = 0
            heappush(queue, (0, edge))
        while queue:
            key, edge = heappop(queue)
            if best[edge] != key or edge in closed.edges or edge in self._barred:
                continue
            bound = ends[edge].start in closed.turns
            for before, k in self._before[edge]:
                if bound and not self._tangent[k]:
                    continue
                value, old = key + self._step[k], best[before]
                if old is None or value < old:
                    best[before] = value
                    heappush(queue, (value, before))
        return best

    def _no_route(self, goal: int, closed: Closed) -> Refusal:
        network = self.site.network
        name = network.nodes[goal].id
        blocked = sorted(network.edges[edge].key for edge in closed.edges)
        blocked += sorted(f"NODE:{network.nodes[node].id}" for node in closed.turns)
        return Refusal("NO_ROUTE", {"goal": name, "blocked": blocked})
