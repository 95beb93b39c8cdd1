"""Cycles of debt, cleared one by one in a total order: short ones first, then large ones, then the smallest ids.

Clearing subtracts the smallest debt of a cycle from each of its debts; no position changes. Debts only shrink during
a call, so no shorter cycle can appear: the cycles of one length are searched once, and a heap keeps them in order.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from msgspec import Struct

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.routing import Work, WorkSpent

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
