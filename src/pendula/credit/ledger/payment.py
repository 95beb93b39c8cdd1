"""One payment: route, reserve, commit, check; or refuse with a reason and change nothing.

A refusal names its cures: changes of lines that would let the payment pass, as few as possible, each verified. A line
can be an obstacle in three ways: too little capacity, no mediation, or an intermediate participant it blocks. A single
change is searched first. If one is not enough, or does not help because routing is greedy, the cure lists all changes
along one route that then carries the whole amount alone: such a route always exists.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

import msgspec

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.max_flow import exact_routes
from pendula.credit.ledger.routing import (
    UNLIMITED,
    FoundRoutes,
    Path,
    Route,
    Work,
    WorkSpent,
    chain,
    greedy_routes,
    shortest,
)
from pendula.credit.model import Code
from pendula.credit.money import text
from pendula.credit.settings import RoutingMode, Settings
from pendula.kernel.canonical import Json

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


CHAINS_MOST = 100_000


class Refused(NamedTuple):
    """Why a payment was not made; `details` name the obstacles."""

    code: Code
    details: dict[str, Json]
    hops: tuple[int, ...] = ()  # where it failed; the shortest chain if the place is unknown
    closed: tuple[int, ...] = ()  # those of them that fail by policy, not by capacity


class Drifted(NamedTuple):
    """A payment that moved a position unexpectedly; it was reverted."""

    participant: int
    expected: int
    actual: int


class RouteSearch(Protocol):
    """Finds routes for an amount, greedily or exactly; raises `WorkSpent`."""

    def __call__(
        self, book: Book, sender: int, receiver: int, amount: int, *, hops: int, paths: int, work: Work
    ) -> FoundRoutes: ...


class PaymentProcessor:
    """Makes payments of one equivalent, and caches chains between participants."""

    def __init__(self, book: Book, settings: Settings) -> None:
        self.book = book
        self.gives_reasons = True  # false if refusals are only counted: then no cure is searched
        self.use(settings)
        self._topology = book.topology

    def use(self, settings: Settings) -> None:
        """Change the settings, from the next payment on."""
        self.hops = settings.routing_max_hops
        self.paths = settings.routing_max_paths
        self.work = settings.routing_timeout_ms * settings.work_units_per_ms
        self.find: RouteSearch = exact_routes if settings.routing_mode is RoutingMode.EXACT else greedy_routes
        self._chains: dict[tuple[int, int], Path | None] = {}
        self._never: dict[tuple[int, int], bool] = {}
        self._empty: Book | None = None
        self._unlimited: list[int] = []

    def pay(self, sender: int, receiver: int, amount: int) -> tuple[Route, ...] | Refused | Drifted:
        """Make a payment; returns the routes used."""
        payment = self.find_routes(sender, receiver, amount)
        if not isinstance(payment, FoundRoutes):
            return payment
        if payment.amount < amount:
            return self.refusal(sender, receiver, amount, payment)
        return self.carry_out(payment.routes, sender, receiver, amount)

    def find_routes(self, sender: int, receiver: int, amount: int) -> FoundRoutes | Refused:
        work = Work(self.work)
        try:
            return self.find(self.book, sender, receiver, amount, hops=self.hops, paths=self.paths, work=work)
        except WorkSpent:
            facts: dict[str, Json] = {"kind": "route_search_limit", "work_limit": self.work}
            return Refused(Code.PAYMENT_TIMEOUT, facts, self.chain(sender, receiver) or ())

    def prepare(self, routes: tuple[Route, ...]) -> Refused | None:
        """Reserve the capacity of all hops of all routes, or none, until `commit` or `abort`."""
        narrow = self.book.reserve(_hops(routes))
        return None if narrow is None else self._too_narrow(narrow)

    def abort(self, routes: tuple[Route, ...]) -> None:
        """Release the reserved capacity."""
        self.book.release(_hops(routes))

    def commit(
        self, routes: tuple[Route, ...], sender: int, receiver: int, amount: int
    ) -> tuple[Route, ...] | Refused | Drifted:
        """Commit prepared routes."""
        self.abort(routes)
        return self.carry_out(routes, sender, receiver, amount)

    def carry_out(
        self, routes: tuple[Route, ...], sender: int, receiver: int, amount: int
    ) -> tuple[Route, ...] | Refused | Drifted:
        """Prepare and commit in one step, all hops of all routes or none; needs no reservation."""
        book = self.book
        hops = _hops(routes)
        narrow = book.lacking(hops)
        if narrow is not None:
            return self._too_narrow(narrow)
        before = {node: book.position(node) for h, _ in hops for node in (book.debtor[h], book.creditor[h])}
        for h, moved in hops:
            book.move(h, moved)
        for node, was in before.items():
            expected = amount * ((node == receiver) - (node == sender))
            actual = book.position(node) - was
            if actual != expected:
                for h, moved in reversed(hops):
                    book.move(h, -moved)
                return Drifted(node, expected, actual)
        return routes

    def _too_narrow(self, h: int) -> Refused:
        facts: dict[str, Json] = {"kind": "narrow_hop", "bottleneck": self._facts(h, 0)}
        return Refused(Code.ROUTING_NO_CAPACITY, facts, (h,))

    def refusal(self, sender: int, receiver: int, amount: int, payment: FoundRoutes) -> Refused:
        """The refusal for routes that carry too little."""
        way = self.chain(sender, receiver)
        if way is None:
            return Refused(Code.ROUTING_NO_ROUTE, {"max_hops": self.hops, "no_route_at_all": True})
        taken = taken_by(payment)
        facts: dict[str, Json] = {
            "found": text(payment.amount),
            "routes": len(payment.routes),
            "limited_by": "max_paths" if len(payment.routes) == self.paths else "capacity",
        }
        if self.never(sender, receiver):
            facts["no_route_at_all"] = True
        if not self.gives_reasons:
            return Refused(Code.ROUTING_NO_CAPACITY, facts, way)
        first, *more = cure = self._cure(Payment(sender, receiver, amount, payment, self.hops), way)
        closed = tuple(dict.fromkeys(change.hop for change in cure if change.kind is not ChangeKind.RAISE_LIMIT))
        if closed:
            facts["limited_by"] = "policy" if len(closed) == len(cure) else "capacity_and_policy"
        facts["bottleneck"] = {**self._facts(first.hop, taken.get(first.hop, 0)), **_change_facts(first)}
        if more:
            facts["and_also"] = [{**self._ends(one.hop), **_change_facts(one)} for one in more]
        return Refused(Code.ROUTING_NO_CAPACITY, facts, tuple(dict.fromkeys(change.hop for change in cure)), closed)

    def _cure(self, payment: Payment, way: Path) -> Cure:
        sender, receiver, amount = payment.sender, payment.receiver, payment.amount

        def passes() -> bool:
            attempt = self.find_routes(sender, receiver, amount)
            return isinstance(attempt, FoundRoutes) and attempt.amount == amount

        return cure_of(self.book, payment, way, passes)

    def _facts(self, h: int, taken: int) -> dict[str, Json]:
        """A hop with its limit, debt, remaining capacity and policy."""
        book = self.book
        return {
            **self._ends(h),
            "limit": text(book.limit[h]),
            "owed": text(book.debt(h)),
            "available": text(max(0, book.capacity[h] - taken)),
            "mediates": book.policy[h].mediates,
        }

    def _ends(self, h: int) -> dict[str, Json]:
        names = self.book.people.names
        return {"from": names[self.book.debtor[h]], "to": names[self.book.creditor[h]]}

    def never(self, sender: int, receiver: int) -> bool:
        """Whether there is no allowed route even if every cycle of debt were cleared.

        A line then has its limit plus the debt of its creditor to the debtor as capacity: that debt may stay.
        """
        self._look_at_topology()
        key = (sender, receiver)
        if key not in self._never:
            self._never[key] = self._no_route(sender, receiver)
        if not self._never[key]:
            return False
        # A line with limit 0 carries only as much as its creditor owes, which changes with every payment.
        owed = [h for h in self._unlimited if self.book.owed[h] < 0]
        for h in owed:
            self._cleared_book().widen(h, -self.book.owed[h])
        try:
            return not owed or self._no_route(sender, receiver)
        finally:
            for h in owed:
                self._cleared_book().widen(h, self.book.owed[h])

    def _no_route(self, sender: int, receiver: int) -> bool:
        return shortest(self._cleared_book(), sender, receiver, self.hops, Work(UNLIMITED)) is None

    def _cleared_book(self) -> Book:
        """The lines without any debt."""
        if self._empty is None:
            self._empty = Book(self.book.code, self.book.people, self.book.lines())
            self._unlimited = [h for h, limit in enumerate(self.book.limit) if limit == 0 and self.book.live(h)]
        return self._empty

    def _look_at_topology(self) -> None:
        if self._topology != self.book.topology or len(self._chains) + len(self._never) >= CHAINS_MOST:
            self._chains, self._never, self._empty, self._topology = {}, {}, None, self.book.topology

    def chain(self, sender: int, receiver: int) -> Path | None:
        """The shortest chain of live lines between the two."""
        self._look_at_topology()
        key = (sender, receiver)
        if key not in self._chains:
            self._chains[key] = chain(self.book, sender, receiver, self.hops)
        return self._chains[key]


def _change_facts(change: Change) -> dict[str, Json]:
    """A required change of a line, as facts of a refusal."""
    if change.kind is ChangeKind.RAISE_LIMIT:
        return {"change": change.kind.value, "by": text(change.by)}
    return {"change": change.kind.value}


def _hops(routes: tuple[Route, ...]) -> list[tuple[int, int]]:
    return [(h, route.amount) for route in routes for h in route.hops]
