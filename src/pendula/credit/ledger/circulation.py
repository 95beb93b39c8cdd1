"""Clearing at its best: what a circulation of the largest volume over the debts is, proven and taken apart.

Whoever finds one is asked through the engine's `Outside` (see `outside.solver`), and nothing it says is taken on
trust: `check` proves every answer, feasible and of the largest volume, before a debt is touched. The largest volume
is unique; which debts it is taken from may depend on the version of the solver, so the answer is recorded, and a run
replays without one.
"""

from collections.abc import Callable, Sequence
from re import compile as regex
from typing import NamedTuple, Self

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.cycles import Cycle, clearable
from pendula.credit.sentences import sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal
from pendula.kernel.errors import PendulaError, WorldBroken

QUESTION = "optimal_clearing"

Edge = tuple[int, int, int]

_ATOMS = regex(r"[0-9]{1,40}")


class Best(NamedTuple):
    """A circulation by the numbers of lines: as cycles, and how much of each debt it takes."""

    cycles: tuple[Cycle, ...]
    flows: dict[int, int]

    @property
    def reduction(self) -> int:
        return sum(self.flows.values())


class WrongFlows(WorldBroken):
    """What a solver gave is not a circulation over the debts, or not one of the largest volume."""

    code = "wrong_flows"

    @classmethod
    def of(cls, kind: str, **facts: Json) -> Self:
        facts["kind"] = kind
        return cls(sentence_of(cls.code, facts), **facts)


def places(edges: Sequence[Edge]) -> dict[int, int]:
    """The nodes, numbered in their order."""
    nodes = {edge[0] for edge in edges}
    nodes.update(edge[1] for edge in edges)
    return {node: at for at, node in enumerate(sorted(nodes))}


def check(edges: Sequence[Edge], flows: Sequence[int]) -> None:
    """Raise `WrongFlows` unless this is a circulation over the edges, and no other has a larger volume."""
    if len(flows) != len(edges):
        raise WrongFlows.of("number_of_flows", debts=len(edges), flows=len(flows))
    place = places(edges)
    balance = [0] * len(place)
    arcs: list[tuple[int, int, int]] = []
    for (debtor, creditor, amount), flow in zip(edges, flows, strict=True):
        if not 0 <= flow <= amount:
            raise WrongFlows.of("flow_out_of_range", debtor=debtor, creditor=creditor, flow=flow, amount=amount)
        u, v = place[debtor], place[creditor]
        balance[u] -= flow
        balance[v] += flow
        if flow < amount:
            arcs.append((u, v, -1))
        if flow:
            arcs.append((v, u, 1))
    for node, change in zip(place, balance, strict=True):
        if change:
            raise WrongFlows.of("position_changed", participant=node, change=change)
    if _has_negative_cycle(arcs, len(place)):
        raise WrongFlows.of("not_the_largest")


def _has_negative_cycle(arcs: list[tuple[int, int, int]], nodes: int) -> bool:
    """Whether a circle of changes gains volume (Bellman and Ford): adding flow costs -1, taking it back +1.

    Without such a circle no distance falls below 1 - `nodes`, and the sweeps come to rest.
    """
    distance, before = [0] * nodes, [-1] * nodes
    changed = True
    while changed:
        changed = False
        for u, v, cost in arcs:
            nearer = distance[u] + cost
            if nearer < distance[v]:
                if nearer <= -nodes:
                    return True
                distance[v] = nearer
                before[v] = u
                changed = True
        if changed and _turns_round(before):
            return True
        # The next sweep goes the other way: chains of arcs settle in few sweeps in whichever order they are listed.
        arcs.reverse()
    return False


def _turns_round(before: Sequence[int]) -> bool:
    """Whether going back from node to node ever comes round; the distances alone would show it much later."""
    seen = [-1] * len(before)
    for start in range(len(before)):
        node = start
        while node >= 0 and seen[node] < 0:
            seen[node] = start
            node = before[node]
        if node >= 0 and seen[node] == start:
            return True
    return False


def as_cycles(edges: Sequence[Edge], flows: Sequence[int], lines: Sequence[int] | None = None) -> tuple[Cycle, ...]:
    """A circulation as simple cycles, in one order; `hops` of a cycle are the lines of its edges, or their places.

    The walk begins at the smallest node with flow and always goes on to the smallest next node; the first cycle that
    closes is cut out, as much of it as flows all round, and the walk goes on from the first debt that has run out.
    What is left of the debts on the walk is kept beside it: a cycle is always an end of the walk, so that taking from
    it is one pass over a slice, and each debt is walked and put back once for every time it is the way on.
    """
    walk = _Walk(edges, flows, range(len(edges)) if lines is None else lines)
    for start in sorted(walk.out):
        walk.take_apart(start)
    return tuple(walk.cycles)


class _Walk:
    """A walk over what is left of a circulation, and the cycles it has cut out."""

    def __init__(self, edges: Sequence[Edge], flows: Sequence[int], lines: Sequence[int]) -> None:
        self._left = dict(zip(lines, flows, strict=True))
        self.out: dict[int, list[tuple[int, int]]] = {}
        # The smallest next node comes last: what has run out is taken off the end.
        order = sorted((at for at, flow in enumerate(flows) if flow), key=lambda at: (edges[at][1], at), reverse=True)
        for at in order:
            self.out.setdefault(edges[at][0], []).append((edges[at][1], lines[at]))
        self.cycles: list[Cycle] = []

    def take_apart(self, start: int) -> None:
        """Every cycle through this node and what the walk meets on the way."""
        out, left = self.out, self._left
        nodes, places, rest, depth = [start], list[int](), list[int](), {start: 0}
        while out[start]:
            node, place = out[nodes[-1]][-1]
            first = depth.get(node)
            places.append(place)
            rest.append(left[place])
            if first is None:
                depth[node] = len(nodes)
                nodes.append(node)
                continue
            amount = min(rest[first:])
            self.cycles.append(_cycle(nodes[first:], places[first:], amount))
            rest[first:] = [one - amount for one in rest[first:]]
            kept = rest.index(0, first)
            self._put_back(nodes, places, rest, kept)
            for gone in nodes[kept + 1 :]:
                del depth[gone]
            del nodes[kept + 1 :], places[kept:], rest[kept:]

    def _put_back(self, nodes: list[int], places: list[int], rest: list[int], kept: int) -> None:
        """What is left of the debts behind this place of the walk; those that have run out are gone."""
        for debtor, place, one in zip(nodes[kept:], places[kept:], rest[kept:], strict=True):
            self._left[place] = one
            if not one:
                self.out[debtor].pop()


def _cycle(nodes: list[int], places: list[int], amount: int) -> Cycle:
    """The cycle from its smallest node on."""
    turn = nodes.index(min(nodes))
    return Cycle((*nodes[turn:], *nodes[:turn]), (*places[turn:], *places[:turn]), amount)


def question_of(edges: Sequence[Edge]) -> Json:
    """What an engine asks its `Outside` as `optimal_clearing`; amounts as text, for they may exceed 64 bits."""
    return {"edges": [[debtor, creditor, str(amount)] for debtor, creditor, amount in edges]}


def flows_of(edges: Sequence[Edge], answer: Json) -> tuple[int, ...] | Refusal:
    """The flows in an answer, proven as if it came from a stranger; a refusal if it brings none or wrong ones."""
    match answer:
        case {"refused": {"code": str(code), "facts": dict(facts)}}:
            return Refusal(code, facts)
        case {"flows": [*texts]} if all(isinstance(one, str) and _ATOMS.fullmatch(one) for one in texts):
            flows = tuple(int(str(one)) for one in texts)
        case _:
            return Refusal(WrongFlows.code, {"kind": "no_flows"})
    try:
        check(edges, flows)
    except WrongFlows as wrong:
        return Refusal(wrong.code, facts_of(wrong))
    return flows


def facts_of(error: PendulaError) -> dict[str, Json]:
    """Its facts for a record; numbers as text, for they may exceed 64 bits."""
    return {name: str(fact) if isinstance(fact, int) else fact for name, fact in error.details.items()}


def best_circulation(book: Book, ask: Callable[[str, Json], Json]) -> Best | Refusal:
    """The best circulation over the debts of a book; a refusal where the solver has none or says what cannot be."""
    debts = clearable(book)
    hops = list(debts)
    edges = [(book.debtor[h], book.creditor[h], owed) for h, owed in debts.items()]
    if not edges:
        return Best((), {})
    flows = flows_of(edges, ask(QUESTION, question_of(edges)))
    if isinstance(flows, Refusal):
        return flows
    return Best(as_cycles(edges, flows, hops), {h: flow for h, flow in zip(hops, flows, strict=True) if flow})
