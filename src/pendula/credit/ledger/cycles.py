"""Cycles of debt, cleared one by one in a total order: short ones first, then large ones, then the smallest ids.

Clearing subtracts the smallest debt of a cycle from each of its debts; no position changes. Debts only shrink during
a call, so no shorter cycle can appear: the cycles of one length are searched once, and a heap keeps them in order.

Optimal clearing instead: a circulation of the largest volume over the debts, split into cycles. A solver finds the
circulation; it is asked through the `Outside` of the engine (see `outside.answers`), and `check` verifies every answer,
feasible and of the largest volume, before a debt changes. The largest volume is unique, but the flows may depend on the
version of the solver, so the answer is recorded, and a replay needs no solver.
"""

from collections.abc import Callable, Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from re import compile as regex
from typing import NamedTuple, Self

from msgspec import Struct

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.routing import Work, WorkSpent
from pendula.credit.sentences import sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Refusal
from pendula.kernel.errors import PendulaError, WorldBroken

SHORTEST = 3


class Cycle(NamedTuple):
    """Participants from the smallest id on, each owing the next, the lines of their debts, and the amount in atoms."""

    nodes: tuple[int, ...]
    hops: tuple[int, ...]
    amount: int


class Cleared(Struct, frozen=True):
    """What one call cleared; `stopped` is "done", "work" or "cycles". Amounts in atoms."""

    cycles: tuple[Cycle, ...]
    work: int
    stopped: str

    def flows(self) -> dict[int, int]:
        """How much each debt lost, by the number of its line."""
        amounts: dict[int, int] = {}
        for cycle in self.cycles:
            for h in cycle.hops:
                amounts[h] = amounts.get(h, 0) + cycle.amount
        return amounts

    @property
    def amount(self) -> int:
        """The sum of the amounts of all cycles."""
        return sum(cycle.amount for cycle in self.cycles)

    @property
    def reduction(self) -> int:
        """The reduction of all debts together."""
        return sum(cycle.amount * len(cycle.hops) for cycle in self.cycles)


def clearable(book: Book) -> dict[int, int]:
    """The debts that may be cleared, by the number of their line, in that order."""
    policy, live = book.policy, book.live
    return {
        h: owed
        for h, owed in enumerate(book.owed)
        if owed > 0 and policy[h].auto_clearing and live(h) and not _held(book, h)
    }


class DebtGraph:
    """The debts that may be cleared: edges from debtor to creditor, both directions sorted by participant."""

    def __init__(self, book: Book) -> None:
        self.left = clearable(book)
        self.out: dict[int, list[tuple[int, int]]] = {}
        self.into: dict[int, list[int]] = {}
        for h in self.left:
            self.out.setdefault(book.debtor[h], []).append((book.creditor[h], h))
            self.into.setdefault(book.creditor[h], []).append(book.debtor[h])
        for ways in self.out.values():
            ways.sort()

    def take(self, cycle: Cycle) -> None:
        """Reduce the debts of a cycle; settled debts leave the graph."""
        count = len(cycle.nodes)
        for at, h in enumerate(cycle.hops):
            self.left[h] -= cycle.amount
            if not self.left[h]:
                u, v = cycle.nodes[at], cycle.nodes[(at + 1) % count]
                self.out[u].remove((v, h))
                self.into[v].remove(u)


def _held(book: Book, h: int) -> bool:
    """Whether a payment holds capacity between the two."""
    return bool(book.reserved) and (h in book.reserved or book.back[h] in book.reserved)


def find_and_clear(book: Book, depth: int, most: int, work_limit: int, *, dry_run: bool = False) -> Cleared:
    """Clear up to `most` cycles of 3 to `depth` debts; a dry run only lists them."""
    graph, work = DebtGraph(book), Work(work_limit)
    done: list[Cycle] = []
    stopped = "done"
    for length in range(SHORTEST, depth + 1):
        try:
            cycles = cycles_of_length(graph, length, work)
        except WorkSpent:
            stopped = "work"
            break
        heap = [(-_least(graph, hops), nodes, hops) for nodes, hops in cycles]
        heapify(heap)
        while heap and len(done) < most:
            known, nodes, hops = heap[0]
            amount = min(graph.left[h] for h in hops)
            if not amount:
                heappop(heap)
            elif amount != -known:
                heapreplace(heap, (-amount, nodes, hops))
            else:
                heappop(heap)
                cycle = Cycle(nodes, hops, amount)
                if not dry_run:
                    clear(book, cycle)
                graph.take(cycle)
                done.append(cycle)
        if len(done) == most:
            stopped = "cycles"
            break
    return Cleared(tuple(done), min(work.spent, work_limit), stopped)


def clear(book: Book, cycle: Cycle) -> None:
    """Subtract the amount from each debt of the cycle; checks that positions stay the same."""
    before = [book.position(node) for node in cycle.nodes]
    for h in cycle.hops:
        book.move(h, -cycle.amount)
    assert before == [book.position(node) for node in cycle.nodes], "clearing moved a position"


def clear_at_once(book: Book, flows: Mapping[int, int]) -> None:
    """Subtract a whole circulation from the debts; checks that positions stay the same."""
    nodes = dict.fromkeys(node for h in flows for node in (book.debtor[h], book.creditor[h]))
    before = [book.position(node) for node in nodes]
    for h, amount in flows.items():
        book.move(h, -amount)
    assert before == [book.position(node) for node in nodes], "clearing moved a position"


def _least(graph: DebtGraph, hops: Sequence[int]) -> int:
    return min(graph.left[h] for h in hops)


def cycles_of_length(graph: DebtGraph, length: int, work: Work) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All simple cycles of exactly `length` debts, as participants and lines, from the smallest participant."""
    cycles: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for root in sorted(graph.out):
        if not graph.out[root] or not graph.into.get(root):
            continue
        distance = _distances(graph, root, length - 1, work)
        if distance:
            _follow(graph.out, root, length, distance, cycles, work)
    return cycles


def _distances(graph: DebtGraph, root: int, most: int, work: Work) -> dict[int, int]:
    """The distance in debts from each larger participant to the root, up to `most`."""
    distances: dict[int, int] = {}
    layer = [root]
    for distance in range(1, most + 1):
        fresh = []
        for v in layer:
            debtors = graph.into.get(v, ())
            work.spend(len(debtors))
            for u in debtors:
                if u > root and u not in distances:
                    distances[u] = distance
                    fresh.append(u)
        layer = fresh
    return distances


def _follow(
    out: dict[int, list[tuple[int, int]]],
    root: int,
    length: int,
    distance: dict[int, int],
    cycles: list[tuple[tuple[int, ...], tuple[int, ...]]],
    work: Work,
) -> None:
    """Add the cycles of this length through the root and larger participants, in the order of ids."""
    nodes, hops = [root], list[int]()

    def extend(left: int) -> None:
        ways = out[nodes[-1]]
        work.spend(len(ways))
        for v, h in ways:
            if left == 1:
                if v == root:
                    cycles.append((tuple(nodes), (*hops, h)))
                    return
            elif distance.get(v, left) < left and v not in nodes and v in out:
                nodes.append(v)
                hops.append(h)
                extend(left - 1)
                nodes.pop()
                hops.pop()

    extend(length)


QUESTION = "optimal_clearing"

Edge = tuple[int, int, int]

_ATOMS = regex(r"[0-9]{1,40}")


class Best(NamedTuple):
    """A circulation as cycles, and its flow by line."""

    cycles: tuple[Cycle, ...]
    flows: dict[int, int]

    @property
    def reduction(self) -> int:
        return sum(self.flows.values())


class WrongFlows(WorldBroken):
    """The answer of a solver is not a circulation over the debts, or not one of the largest volume."""

    code = "wrong_flows"

    @classmethod
    def of(cls, kind: str, **facts: Json) -> Self:
        facts["kind"] = kind
        return cls(sentence_of(cls.code, facts), **facts)


def places(edges: Sequence[Edge]) -> dict[int, int]:
    """Consecutive numbers for the nodes, in order."""
    nodes = {edge[0] for edge in edges}
    nodes.update(edge[1] for edge in edges)
    return {node: at for at, node in enumerate(sorted(nodes))}


def check(edges: Sequence[Edge], flows: Sequence[int]) -> None:
    """Raise `WrongFlows` unless this is a circulation of the largest volume over the edges."""
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
    """Whether a cycle of changes gains volume (Bellman-Ford): adding flow costs -1, removing it +1.

    Without such a cycle no distance falls below 1 - `nodes`, and the sweeps terminate.
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
        if changed and _has_loop(before):
            return True
        # Alternate the direction: chains of arcs then settle in few sweeps, whatever their order.
        arcs.reverse()
    return False


def _has_loop(before: Sequence[int]) -> bool:
    """Whether the predecessors contain a loop; the distances alone would show it much later."""
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
    """Split a circulation into simple cycles, in a fixed order; `hops` are the lines of the edges, or their indexes.

    The walk starts at the smallest node with flow and always continues to the smallest next node. The first cycle that
    closes is removed with its smallest flow, and the walk continues from the first debt that has run out. A cycle is
    always a suffix of the walk, so removing its flow is one pass over a slice of the remaining flows.
    """
    walk = _Walk(edges, flows, range(len(edges)) if lines is None else lines)
    for start in sorted(walk.out):
        walk.split_from(start)
    return tuple(walk.cycles)


class _Walk:
    """A walk over the rest of a circulation, and the cycles found so far."""

    def __init__(self, edges: Sequence[Edge], flows: Sequence[int], lines: Sequence[int]) -> None:
        self._left = dict(zip(lines, flows, strict=True))
        self.out: dict[int, list[tuple[int, int]]] = {}
        # The smallest next node comes last, so that exhausted edges are popped.
        order = sorted((at for at, flow in enumerate(flows) if flow), key=lambda at: (edges[at][1], at), reverse=True)
        for at in order:
            self.out.setdefault(edges[at][0], []).append((edges[at][1], lines[at]))
        self.cycles: list[Cycle] = []

    def split_from(self, start: int) -> None:
        """Extract every cycle of the walk from this node."""
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
        """Store the remaining flows behind this place of the walk; drop exhausted edges."""
        for debtor, place, one in zip(nodes[kept:], places[kept:], rest[kept:], strict=True):
            self._left[place] = one
            if not one:
                self.out[debtor].pop()


def _cycle(nodes: list[int], places: list[int], amount: int) -> Cycle:
    """The cycle from its smallest node on."""
    turn = nodes.index(min(nodes))
    return Cycle((*nodes[turn:], *nodes[:turn]), (*places[turn:], *places[:turn]), amount)


def question_of(edges: Sequence[Edge]) -> Json:
    """The question `optimal_clearing` to `Outside`; amounts as text, because they may exceed 64 bits."""
    return {"edges": [[debtor, creditor, str(amount)] for debtor, creditor, amount in edges]}


def flows_of(edges: Sequence[Edge], answer: Json) -> tuple[int, ...] | Refusal:
    """The verified flows of an answer; a refusal if they are missing or wrong."""
    match answer:
        case {"refused": {"code": str(code), "facts": dict(facts)}}:
            return Refusal(code, facts)
        case {"flows": [*texts]} if all(isinstance(text, str) and _ATOMS.fullmatch(text) for text in texts):
            flows = tuple(int(str(text)) for text in texts)
        case _:
            return Refusal(WrongFlows.code, {"kind": "no_flows"})
    try:
        check(edges, flows)
    except WrongFlows as wrong:
        return Refusal(wrong.code, facts_of(wrong))
    return flows


def facts_of(error: PendulaError) -> dict[str, Json]:
    """The facts of an error for a record; numbers as text, because they may exceed 64 bits."""
    return {name: str(fact) if isinstance(fact, int) else fact for name, fact in error.details.items()}


def best_circulation(book: Book, ask: Callable[[str, Json], Json]) -> Best | Refusal:
    """The best circulation over the debts of a book; a refusal if the solver failed or its answer is wrong."""
    debts = clearable(book)
    hops = list(debts)
    edges = [(book.debtor[h], book.creditor[h], owed) for h, owed in debts.items()]
    if not edges:
        return Best((), {})
    flows = flows_of(edges, ask(QUESTION, question_of(edges)))
    if isinstance(flows, Refusal):
        return flows
    return Best(as_cycles(edges, flows, hops), {h: flow for h, flow in zip(hops, flows, strict=True) if flow})
