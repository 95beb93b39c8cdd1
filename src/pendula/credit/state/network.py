"""The network of a run: participants, one book for each equivalent, and what is kept beside each book."""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from pendula.credit.ledger.book import Book, LedgerText, People
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.credit.ledger.trust import Trust
from pendula.credit.model import Drift, LineStatus, Participant, ParticipantStatus, Policy, Scenario, Trustline
from pendula.credit.planning.draws import Draws
from pendula.credit.planning.planner import Market, Planner
from pendula.credit.settings import Settings
from pendula.credit.state.hop_counts import HopCounts


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
