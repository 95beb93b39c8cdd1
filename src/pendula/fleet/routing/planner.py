"""The cheapest way for one truck: integer costs, total order, no tie left to chance.

A state is the edge by which a truck arrived, so that turns are counted. For every destination one tree holds the cost
from every state; a route is walked down the tree. Costs compare by time, then length, then the sequence of edge keys:
edges are numbered in the order of their keys, so the smallest number wins.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from heapq import heapify, heappop, heappush
from typing import NamedTuple, TypeAlias

from pendula.fleet.geometry.angles import turn_urad
from pendula.fleet.model import MoveStyle
from pendula.fleet.network.transitions import truck_yaw
from pendula.fleet.routing.guiding import guided
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.trucks.profiles import RobotProfile
from pendula.fleet.units import MILLION, angle_femto, half_up
from pendula.kernel.engine import Refusal

# Time and length in one number: lengths stay below this, so time decides first.
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
    """A pivot in a node; the yaw, where known, counts for the first turn."""

    node: int
    yaw_urad: int | None = None


Anchor: TypeAlias = OnEdge | AtNode


@dataclass(frozen=True, slots=True)
class Closed:
    """What a route has to do without: edges, and nodes in which it may neither turn nor stop. A truck that stands in
    such a node already has arrived there."""

    edges: frozenset[int] = field(default_factory=frozenset)
    turns: frozenset[int] = field(default_factory=frozenset)
    # Where nothing but the edges of a dead end of its own sets this truck apart from all others: what is closed to
    # everybody, and those edges. The trees of everybody then serve this truck too.
    everybody: "Closed | None" = field(default=None, compare=False)
    home: frozenset[int] = field(default_factory=frozenset, compare=False)
    # What is closed of it at other times too: trees for that are there already, and nowhere too dear.
    usual: "Closed | None" = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return bool(self.edges or self.turns)


@dataclass(frozen=True, slots=True)
class Way:
    """The edges of a route in order, the first one that of the anchor where it lies on an edge."""

    edges: tuple[int, ...]
    cost_us: int
    # Turn at the start, in a node, and after every edge but the last.
    turns_urad: tuple[int, ...]


class _Begun(NamedTuple):
    """How the cheapest way leaves a node: its cost, time and length in one number, the edge, the turn into it."""

    key: int
    edge: int
    turn: int
    tree: Sequence[int | None]


OPEN = Closed()


class Planner:
    """Routes for trucks of one profile on one map. `penalties_us` makes edges dearer; caches are all it changes."""

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
        self._penalties = [one.penalty_ms * 1000 + more.get(i, 0) for i, one in enumerate(edges)]
        # Edges that trucks of this type may not use.
        self._barred = frozenset(
            i for i, one in enumerate(edges) if one.allowed_profiles and profile.profile_id not in one.allowed_profiles
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
        # What it costs to turn out of one edge and drive the next to its end.
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
        # Whose trees lead a planner that grows none.
        self._guide: Planner | None = None

    def dearer(self, more_us: Mapping[int, int], *, once: bool = False) -> "Planner":
        """A planner for which driving some edges costs more; it shares all else with this one but the trees. One that
        is used `once` grows none: the trees of this one, where everything is at most as dear, lead it to its goals."""
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
        """The time for a part of an edge at `vMax` or at the limit of the edge, half up, with what it costs besides."""
        one = self.site.network.edges[edge]
        slow = self._reverse_milli if one.style is MoveStyle.BACKWARD else 1000
        limit = self.profile.v_max_um_s if one.max_speed_um_s is None else one.max_speed_um_s
        time = half_up(length_um * MILLION * slow, min(self.profile.v_max_um_s, limit) * 1000)
        return time + self._penalties[edge]

    def edge_us(self, edge: int) -> int:
        """The same for a whole edge, which is known."""
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
        """Computes the trees of these destinations ahead of time."""
        for goal in goals:
            self._kept(goal, OPEN)

    def forget(self) -> None:
        """Let go of all trees: each has a number for every edge of the map."""
        self._trees.clear()
        self._detours.clear()

    def way(self, start: Anchor, goal: int, closed: Closed = OPEN) -> Way | Refusal:
        """The cheapest way from an anchor to a node; `NO_ROUTE` where there is none.

        From the middle of an edge it first goes on to the end of that edge, closed or not: a truck is there already.
        """
        match start:
            case OnEdge(edge, s_um):
                return self._from_edge(edge, s_um, goal, closed)
            case AtNode(node, yaw):
                return self._from_node(node, yaw, goal, closed)

    def cost_us(self, start: Anchor, goal: int, closed: Closed = OPEN) -> int | None:
        """What the cheapest way costs; the way itself, edge by edge, is not looked for."""
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
        """What the way after the end of an edge costs."""
        return None if goal in closed.turns else self._cost_after_us(edge, goal, closed)

    def _cost_after_us(self, edge: int, goal: int, closed: Closed) -> int | None:
        key = self._tree(goal, closed, [(edge, 0)])[edge]
        return None if key is None else key // _LENGTHS

    def onward(self, edge: int, goal: int, closed: Closed = OPEN) -> Way | Refusal:
        """The way after the end of an edge; the edge itself is neither listed nor counted."""
        if goal in closed.turns:
            return self._no_route(goal, closed)
        return self._after(edge, goal, closed)

    def _after(self, edge: int, goal: int, closed: Closed) -> Way | Refusal:
        tree = self._tree(goal, closed, [(edge, 0)])
        key = tree[edge]
        if key is None:
            return self._no_route(goal, closed)
        edges, turns = self._walk(edge, goal, tree, closed)
        return Way(tuple(edges), key // _LENGTHS, tuple(turns))

    def _from_edge(self, edge: int, s_um: int, goal: int, closed: Closed) -> Way | Refusal:
        there = s_um >= self._length[edge] and self.site.network.edges[edge].end == goal
        rest = self._after(edge, goal, closed) if there else self.onward(edge, goal, closed)
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

    def _best(self, node: int, yaw: int | None, goal: int, closed: Closed) -> "_Begun | None":
        """The edge by which the cheapest way leaves a node."""
        starts = list(self._starts(node, yaw, closed))
        tree = self._tree(goal, closed, [(edge, key) for edge, key, _ in starts])
        best: _Begun | None = None
        for edge, begun, turn in starts:
            after = tree[edge]
            # Edges come in the order of their keys: the first of equals stays.
            if after is not None and (best is None or begun + after < best.key):
                best = _Begun(begun + after, edge, turn, tree)
        return best

    def _starts(self, node: int, yaw: int | None, closed: Closed) -> Iterator[tuple[int, int, int]]:
        """The edges by which a truck may leave a node, with what it costs to the end of each, and the turn."""
        turning = self.site.network.nodes[node].turning
        for edge in self.site.network.outgoing[node]:
            turn = self._first_turn(edge, yaw)
            sharp = abs(turn) > self.site.params.tangent_eps_urad
            if edge in closed.edges or edge in self._barred or (sharp and (node in closed.turns or not turning)):
                continue
            cost = self._edge_us[edge] + self.first_turn_us(edge, yaw)
            yield edge, cost * _LENGTHS + self._length[edge], turn

    def first_turn_us(self, edge: int, yaw: int | None) -> int:
        """The time to turn out of a yaw into the start of an edge; nothing where it is tangent or not known."""
        turn = self._first_turn(edge, yaw)
        return self.turn_us(turn) if abs(turn) > self.site.params.tangent_eps_urad else 0

    def _first_turn(self, edge: int, yaw: int | None) -> int:
        one = self.site.network.edges[edge]
        return 0 if yaw is None else turn_urad(yaw, truck_yaw(one.path.yaws[0][0], one.style))

    def _walk(self, edge: int, goal: int, tree: Sequence[int | None], closed: Closed) -> tuple[list[int], list[int]]:
        edges: list[int] = []
        turns: list[int] = []
        ends = self.site.network.edges
        # A route that arrives in its goal is over, also when another way would lead through it again.
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
        """For every edge the cost from its end to the goal, time and length in one number; None where no way leads. A
        planner that grows no trees knows it of the cheapest ways from the `starts` alone."""
        if self._guide is not None:
            least = self._guide._tree(goal, closed.usual or closed, starts)
            return self._led(least, goal, closed, starts)
        if closed.everybody is not None and not self._at_home(goal, closed):
            shared = self._kept(goal, closed.everybody)
            return self._from_home(shared, closed) if any(edge in closed.home for edge, _ in starts) else shared
        return self._kept(goal, closed)

    def _led(
        self, least: Sequence[int | None], goal: int, closed: Closed, starts: Sequence[tuple[int, int]]
    ) -> list[int | None]:
        ends = frozenset(self.site.network.incoming[goal])
        found: list[int | None] = [None] * len(least)
        onward = partial(self._onward, closed=closed)
        for edge, cost in guided(starts, ends, least, onward).items():
            found[edge] = cost
        return found

    def _onward(self, edge: int, closed: Closed) -> list[tuple[int, int]]:
        return [(self._out[k], self._step[k]) for k in self._moves(edge, closed)]

    def _kept(self, goal: int, closed: Closed) -> list[int | None]:
        trees, most = (self._detours, _MOST_DETOURS) if closed else (self._trees, _MOST_TREES)
        tree = trees.get((goal, closed))
        if tree is None:
            if len(trees) >= most:
                # The oldest goes: to drop all at once would have them all computed again.
                del trees[next(iter(trees))]
            tree = trees[goal, closed] = self._grow(goal, closed)
        return tree

    def _at_home(self, goal: int, closed: Closed) -> bool:
        """Whether a goal lies in the dead end of the truck, to which everybody's tree does not lead."""
        return any(edge in closed.home for edge in self.site.network.outgoing[goal])

    def _from_home(self, tree: list[int | None], closed: Closed) -> list[int | None]:
        """Everybody's tree with the ways out of the dead end that is closed to everybody else. What begins elsewhere
        keeps its value: nothing leads through a dead end."""
        found = tree.copy()
        home = closed.home - self._barred
        queue = [(key, edge) for edge in sorted(home) if (key := found[edge]) is not None]
        heapify(queue)
        while queue:
            key, edge = heappop(queue)
            if found[edge] != key:
                continue
            bound = self.site.network.edges[edge].start in closed.turns
            for before, k in self._before[edge]:
                if before not in home or (bound and not self._tangent[k]):
                    continue
                value, old = key + self._step[k], found[before]
                if old is None or value < old:
                    found[before] = value
                    heappush(queue, (value, before))
        return found

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
