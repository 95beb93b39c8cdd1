"""The network of a run: participants, one book for each equivalent, and what is kept beside each book.

Beside a book are its trust (limits grow with clearing and shrink while debts stay high; whole cents, exact ratios) and
attempts and failures of payments at each hop, from which bottlenecks are derived. A committed payment counts at every
hop of its routes, a refused one at the hops that would have to change. A technical failure counts at the hops of the
shortest chain, since its place is unknown.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

import msgspec
from msgspec import Struct

from pendula.credit.ledger.book import Book, LedgerText, People
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.credit.model import (
    TECHNICAL,
    Code,
    Drift,
    LineStatus,
    Participant,
    ParticipantStatus,
    Policy,
    Scenario,
    Trustline,
)
from pendula.credit.money import CENT, MOST
from pendula.credit.planning.planner import Draws, Market, Planner
from pendula.credit.settings import Settings


def whole_cents(amount: int) -> int:
    return amount // CENT * CENT


class Trust:
    """Trust drift of one book: changes of limits, and overloaded lines."""

    def __init__(self, book: Book, drift: Drift) -> None:
        self.book = book
        # Share the object of a limit in whole cents: there is one per line.
        self.original = [whole_cents(limit) if limit % CENT else limit for limit in book.limit]
        self.clearing_count: dict[int, int] = {}
        self.last_clearing: dict[int, int] = {}
        self.cleared_volume: dict[int, int] = {}
        # Fractions: decimals would round according to the context of the process.
        self._grow = (1 + Fraction(drift.growth_rate)).as_integer_ratio()
        self._shrink = (1 - Fraction(drift.decay_rate)).as_integer_ratio()
        self._most = _exact(drift.max_growth)
        self._least = _exact(drift.min_limit_ratio)
        self._threshold = _exact(drift.overload_threshold)
        self._overloaded: dict[int, None] = {}
        self.look(range(len(book)))

    def begin(self, h: int) -> None:
        """Reset the history of a line."""
        self.original[h] = whole_cents(self.book.limit[h])
        for known in (self.clearing_count, self.last_clearing, self.cleared_volume):
            known.pop(h, None)

    def look(self, lines: Iterable[int]) -> None:
        """Update which of these lines are overloaded."""
        book, (numerator, denominator) = self.book, self._threshold
        for h in lines:
            limit = book.limit[h]
            over = limit > 0 and max(0, book.owed[h]) * denominator >= limit * numerator
            if over and book.status[h] is LineStatus.ACTIVE:
                self._overloaded[h] = None
            else:
                self._overloaded.pop(h, None)

    def cleared(self, amounts: dict[int, int], tick: int) -> list[int]:
        """Grow the limits of cleared lines, once per call; returns those that grew."""
        book, grown = self.book, []
        for h in sorted(amounts):
            self.clearing_count[h] = self.clearing_count.get(h, 0) + 1
            self.last_clearing[h] = tick
            self.cleared_volume[h] = self.cleared_volume.get(h, 0) + amounts[h]
            limit = book.limit[h]
            new_limit = min(_times(limit, self._grow), _times(self.original[h], self._most), MOST)
            if whole_cents(new_limit) > limit:
                book.set_limit(h, whole_cents(new_limit))
                grown.append(h)
        return grown

    def decay(self, tick: int) -> list[int]:
        """Shrink the limits of overloaded lines that were not cleared in this tick, never below the debt."""
        book, shrunk = self.book, []
        self.look(book.touched)
        for h in sorted(self._overloaded):
            if self.last_clearing.get(h) == tick:
                continue
            limit = book.limit[h]
            debt = -(-max(0, book.owed[h]) // CENT) * CENT
            new_limit = whole_cents(max(_times(limit, self._shrink), _times(self.original[h], self._least), debt))
            if new_limit < limit:
                book.set_limit(h, new_limit)
                shrunk.append(h)
        self.look(shrunk)
        return shrunk


def _exact(value: Decimal) -> tuple[int, int]:
    return Fraction(value).as_integer_ratio()


def _times(amount: int, ratio: tuple[int, int]) -> int:
    return amount * ratio[0] // ratio[1]


TIMEOUTS_SHARE = Fraction(1, 5)


class HopCount(Struct):
    """Counts of one hop; `errors` excludes timeouts, so that each failed attempt counts once.

    `closed` counts rejections caused by the policy of the line, not by its capacity.
    """

    attempts: int = 0
    rejected: int = 0
    errors: int = 0
    timeouts: int = 0
    closed: int = 0

    @property
    def score(self) -> Fraction:
        """The share of attempts that failed here, 0 to 1."""
        return Fraction(self.errors + self.timeouts + self.rejected, self.attempts) if self.attempts else Fraction(0)

    @property
    def reason(self) -> str:
        if self.attempts and Fraction(self.timeouts, self.attempts) >= TIMEOUTS_SHARE:
            return "TOO_MANY_TIMEOUTS"
        return "FREQUENT_ABORTS" if self.rejected or self.errors else "HIGH_USED"


class SavedCount(Struct, frozen=True, forbid_unknown_fields=True, array_like=True):
    """The saved counts of a hop, by the ends of its line."""

    creditor: str
    debtor: str
    attempts: int
    rejected: int
    errors: int
    timeouts: int
    closed: int


class Bottleneck(NamedTuple):
    """A line at which payments fail, and how often."""

    hop: int
    counts: HopCount


class HopCounts:
    """Counts by the number of the line; hops that were never tried are absent."""

    def __init__(self) -> None:
        self.of: dict[int, HopCount] = {}

    def made(self, hops: Iterable[int]) -> None:
        for h in hops:
            self._at(h).attempts += 1

    def failed(self, hops: Iterable[int], code: Code, closed: Collection[int] = ()) -> None:
        """Count a payment that failed at these hops; `closed` are the hops whose policy rejected it."""
        for h in hops:
            count = self._at(h)
            count.attempts += 1
            count.timeouts += code is Code.PAYMENT_TIMEOUT
            count.errors += code in TECHNICAL and code is not Code.PAYMENT_TIMEOUT
            count.rejected += code not in TECHNICAL
            count.closed += h in closed

    def bottlenecks(self) -> Iterator[Bottleneck]:
        """Hops where payments fail, worst first; ties by the number of the line."""
        worst = sorted((-count.score, h) for h, count in self.of.items() if count.score)
        return (Bottleneck(h, self.of[h]) for _, h in worst)

    def _at(self, h: int) -> HopCount:
        return self.of.setdefault(h, HopCount())


class EquivalentLedger:
    """Everything that belongs to one equivalent."""

    def __init__(self, book: Book, drift: Drift, settings: Settings) -> None:
        self.book = book
        self.processor = PaymentProcessor(book, settings)
        self.market = Market(book)
        self.trust = Trust(book, drift)
        self.text = LedgerText(book)
        self.hops = HopCounts()
        self.known = [book.position(node) for node in range(len(book.people))]
        self.expected: dict[int, int] = {}

    def expect(self, sender: int, receiver: int, amount: int) -> None:
        """Record a payment: the next audit expects positions to have moved by this amount."""
        expected = self.expected
        expected[sender] = expected.get(sender, 0) - amount
        expected[receiver] = expected.get(receiver, 0) + amount

    def reopen(self, h: int, limit: int) -> None:
        """Reopen a closed line without its history."""
        self.book.set_limit(h, limit)
        self.book.set_status([h], LineStatus.ACTIVE)
        self.trust.begin(h)

    def drifts(self) -> Iterator[tuple[int, int, int]]:
        """Unexpected moves of positions, as (participant, expected, actual); resets the expectations."""
        book, known = self.book, self.known
        nodes = {node for h in book.touched for node in (book.debtor[h], book.creditor[h])}
        for node in sorted(nodes.union(self.expected)):
            actual, expected = book.position(node) - known[node], self.expected.get(node, 0)
            known[node] = book.position(node)
            if actual != expected:
                yield node, expected, actual
        self.expected = {}

    def settle(self) -> None:
        """Update everything that depends on touched lines, and reset the lists of touched lines."""
        book = self.book
        self.trust.look(book.touched)
        self.text.refresh(book.touched, book.changed_lines)
        self.market.refresh()
        book.touched.clear()
        book.changed_lines.clear()


class Network:
    """Participants by id and ledgers by equivalent, both in order."""

    def __init__(self, scenario: Scenario, settings: Settings) -> None:
        self.scenario = scenario
        self._draws: Draws | None = None
        self._gives_reasons = True
        self.settings = settings
        lines: dict[str, list[Trustline]] = {code: [] for code in scenario.equivalents}
        for line in scenario.lines:
            lines[line.equivalent].append(line)
        self.rebuild(scenario.participants, lines)

    def rebuild(self, participants: Iterable[Participant], lines: Mapping[str, Iterable[Trustline]]) -> None:
        """Replace participants and lines; all debts are gone."""
        self.people = People(participants)
        drift = self.scenario.drift
        books = {code: Book(code, self.people, lines[code]) for code in sorted(lines)}
        self.ledgers = {code: EquivalentLedger(book, drift, self.settings) for code, book in books.items()}
        for ledger in self.ledgers.values():
            ledger.processor.gives_reasons = self._gives_reasons
        self.planner = self._planner()

    def _planner(self) -> Planner:
        scenario, settings = self.scenario, self.settings
        markets = [ledger.market for ledger in self.ledgers.values()]
        presets, cap = settings.profile_presets, settings.amount_cap
        planner = Planner(self.people, markets, scenario.profiles, scenario.flow, presets, cap)
        planner.draws = self._draws
        return planner

    def share(self, draws: Draws) -> None:
        """Share first draws with other runs of the same seed; results do not change."""
        self._draws = self.planner.draws = draws

    def only_count(self) -> None:
        """Stop searching cures for refusals: for runs that only count them and have no journal."""
        self._gives_reasons = False
        for ledger in self.ledgers.values():
            ledger.processor.gives_reasons = False

    def policies(self) -> dict[tuple[str, str, str], Policy]:
        """The policies of the scenario by (equivalent, creditor, debtor); needed to restore a state."""
        return {(line.equivalent, line.creditor, line.debtor): line.policy for line in self.scenario.lines}

    def use(self, settings: Settings) -> None:
        """Change the settings."""
        self.settings = settings
        for ledger in self.ledgers.values():
            ledger.processor.use(settings)
        self.planner = self._planner()

    def extend(self, participants: Iterable[Participant], lines: Iterable[Trustline]) -> None:
        """Add participants and lines; debts, limits and histories of lines stay."""
        fresh: dict[str, list[Trustline]] = {code: list(ledger.book.lines()) for code, ledger in self.ledgers.items()}
        for line in lines:
            fresh[line.equivalent].append(line)
        old = self.ledgers
        self.rebuild([*self.people.all, *participants], fresh)
        for code, ledger in self.ledgers.items():
            _carry_over(old[code], ledger)

    def freeze(self, participant: str, lines: bool) -> dict[str, list[int]]:
        """Suspend a participant; returns the frozen lines by equivalent."""
        node = self.people.index[participant]
        self.people.all[node] = msgspec.structs.replace(self.people.all[node], status=ParticipantStatus.SUSPENDED)
        self.people.active[node] = False
        frozen: dict[str, list[int]] = {}
        for code, ledger in self.ledgers.items():
            book = ledger.book
            mine = [
                h
                for h in range(len(book))
                if lines and node in (book.creditor[h], book.debtor[h]) and book.status[h] is LineStatus.ACTIVE
            ]
            book.set_status(mine, LineStatus.FROZEN)
            frozen[code] = mine
        return frozen

    def broken(self) -> Iterator[str]:
        for ledger in self.ledgers.values():
            yield from ledger.book.broken()


def _carry_over(old: EquivalentLedger, new: EquivalentLedger) -> None:
    names = old.book.people.names
    for h in range(len(old.book)):
        line = new.book.line(names[old.book.creditor[h]], names[old.book.debtor[h]])
        assert line is not None
        owed = old.book.owed[h]
        if owed > 0:
            new.book.move(line, owed)
        new.trust.original[line] = old.trust.original[h]
        if h in old.hops.of:
            new.hops.of[line] = old.hops.of[h]
        for before, after in (
            (old.trust.clearing_count, new.trust.clearing_count),
            (old.trust.last_clearing, new.trust.last_clearing),
            (old.trust.cleared_volume, new.trust.cleared_volume),
        ):
            if h in before:
                after[line] = before[h]
    index = new.book.people.index
    for node, name in enumerate(names):
        new.known[index[name]] = old.known[node]
        if node in old.expected:
            new.expected[index[name]] = old.expected[node]
