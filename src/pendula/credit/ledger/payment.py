"""One payment: found, held, carried out, checked; or refused with a reason, and then nothing has changed."""

from typing import NamedTuple, Protocol

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.cures import Change, ChangeKind, Cure, Payment, cure_of, taken_by
from pendula.credit.ledger.max_flow import exact_routes
from pendula.credit.ledger.routing import (
    UNLIMITED,
    Found,
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

CHAINS_MOST = 100_000


class Refused(NamedTuple):
    """Why a payment was not made; `details` name what stands in its way."""

    code: Code
    details: dict[str, Json]
    hops: tuple[int, ...] = ()  # that are to blame; where nobody knows, those of the shortest chain
    closed: tuple[int, ...] = ()  # those of them that have to let payments pass, not to take more


class Drifted(NamedTuple):
    """A payment that moved a position by something else than it should; it was taken back."""

    participant: int
    expected: int
    actual: int


class RouteSearch(Protocol):
    """Finds routes for an amount: greedily or exactly; raises `WorkSpent`."""

    def __call__(
        self, book: Book, sender: int, receiver: int, amount: int, *, hops: int, paths: int, work: Work
    ) -> Found: ...


class Cashier:
    """Where payments of one equivalent are made: the book, how routes are found, and the chains known so far."""

    def __init__(self, book: Book, settings: Settings) -> None:
        self.book = book
        self.gives_reasons = True  # false where refusals are only counted: what would cure them is not looked for
        self.use(settings)
        self._topology = book.topology

    def use(self, settings: Settings) -> None:
        """Other settings from the next payment on."""
        self.hops = settings.routing_max_hops
        self.paths = settings.routing_max_paths
        self.work = settings.routing_timeout_ms * settings.work_units_per_ms
        self.find: RouteSearch = exact_routes if settings.routing_mode is RoutingMode.EXACT else greedy_routes
        self._chains: dict[tuple[int, int], Path | None] = {}
        self._never: dict[tuple[int, int], bool] = {}
        self._empty: Book | None = None
        self._unlimited: list[int] = []

    def pay(self, sender: int, receiver: int, amount: int) -> tuple[Route, ...] | Refused | Drifted:
        """The routes that were used."""
        found = self.find_routes(sender, receiver, amount)
        if not isinstance(found, Found):
            return found
        if found.amount < amount:
            return self.refusal(sender, receiver, amount, found)
        return self.carry_out(found.routes, sender, receiver, amount)

    def find_routes(self, sender: int, receiver: int, amount: int) -> Found | Refused:
        work = Work(self.work)
        try:
            return self.find(self.book, sender, receiver, amount, hops=self.hops, paths=self.paths, work=work)
        except WorkSpent:
            facts: dict[str, Json] = {"kind": "route_search_limit", "work_limit": self.work}
            return Refused(Code.PAYMENT_TIMEOUT, facts, self.chain(sender, receiver) or ())

    def prepare(self, routes: tuple[Route, ...]) -> Refused | None:
        """Hold the capacity of all hops of all routes, or of none, for somebody who commits or aborts later."""
        narrow = self.book.reserve(_hops(routes))
        return None if narrow is None else self._too_narrow(narrow)

    def abort(self, routes: tuple[Route, ...]) -> None:
        """Give back what was prepared."""
        self.book.release(_hops(routes))

    def commit(
        self, routes: tuple[Route, ...], sender: int, receiver: int, amount: int
    ) -> tuple[Route, ...] | Refused | Drifted:
        """Carry out what was prepared."""
        self.abort(routes)
        return self.carry_out(routes, sender, receiver, amount)

    def carry_out(
        self, routes: tuple[Route, ...], sender: int, receiver: int, amount: int
    ) -> tuple[Route, ...] | Refused | Drifted:
        """Prepare and commit in one step: all hops of all routes, or none. Nobody comes between, so nothing is held."""
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

    def refusal(self, sender: int, receiver: int, amount: int, found: Found) -> Refused:
        """Why what was found is not enough."""
        way = self.chain(sender, receiver)
        if way is None:
            return Refused(Code.ROUTING_NO_ROUTE, {"max_hops": self.hops, "no_route_at_all": True})
        taken = taken_by(found)
        facts: dict[str, Json] = {
            "found": text(found.amount),
            "routes": len(found.routes),
            "limited_by": "max_paths" if len(found.routes) == self.paths else "capacity",
        }
        if self.never(sender, receiver):
            facts["no_route_at_all"] = True
        if not self.gives_reasons:
            return Refused(Code.ROUTING_NO_CAPACITY, facts, way)
        first, *more = cure = self._cure(Payment(sender, receiver, amount, found, self.hops), way)
        closed = tuple(dict.fromkeys(one.hop for one in cure if one.kind is not ChangeKind.RAISE_LIMIT))
        if closed:
            facts["limited_by"] = "policy" if len(closed) == len(cure) else "capacity_and_policy"
        facts["bottleneck"] = {**self._facts(first.hop, taken.get(first.hop, 0)), **_asked(first)}
        if more:
            facts["and_also"] = [{**self._ends(one.hop), **_asked(one)} for one in more]
        return Refused(Code.ROUTING_NO_CAPACITY, facts, tuple(dict.fromkeys(one.hop for one in cure)), closed)

    def _cure(self, payment: Payment, way: Path) -> Cure:
        sender, receiver, amount = payment.sender, payment.receiver, payment.amount

        def passes() -> bool:
            found = self.find_routes(sender, receiver, amount)
            return isinstance(found, Found) and found.amount == amount

        return cure_of(self.book, payment, way, passes)

    def _facts(self, h: int, taken: int) -> dict[str, Json]:
        """A hop and why no more goes over it: full, or closed to value that goes on."""
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
        """Whether no allowed route leads there even if every circle of debt were cleared.

        A line then lends its limit and what its creditor owes the debtor: that debt may stay.
        """
        self._look_at_topology()
        key = (sender, receiver)
        if key not in self._never:
            self._never[key] = self._no_route(sender, receiver)
        if not self._never[key]:
            return False
        # Over a line without a limit value goes only as far as its creditor owes, which changes with every payment.
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


def _asked(change: Change) -> dict[str, Json]:
    """What should be different about a line, as a refusal tells it."""
    if change.kind is ChangeKind.RAISE_LIMIT:
        return {"change": change.kind.value, "by": text(change.by)}
    return {"change": change.kind.value}


def _hops(routes: tuple[Route, ...]) -> list[tuple[int, int]]:
    return [(h, route.amount) for route in routes for h in route.hops]
