"""Effects of due events of the timeline: notes, and injections if they are enabled."""

from collections.abc import Iterator
from typing import assert_never

from msgspec import Struct

from pendula.credit.events import Event, LineView, Note, Person, TopologyChanged, TopologyPayload
from pendula.credit.model import (
    AddParticipant,
    CreateTrustline,
    Effect,
    EventType,
    FreezeParticipant,
    InjectDebt,
    LineStatus,
    Participant,
    TimelineEvent,
    Trustline,
)
from pendula.credit.money import MOST, text
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import event_parts
from pendula.kernel.canonical import Json

EFFECTS_MOST = 500


class InjectedChanges(Struct):
    """What an injection changed in one equivalent; lines by the ids of their ends."""

    nodes: list[Person]
    frozen_nodes: list[str]
    added: list[tuple[str, str]]
    frozen: list[tuple[str, str]]
    owed: list[tuple[str, str]]

    @property
    def shape(self) -> bool:
        """Whether participants or lines have changed, not only debts."""
        return any((self.nodes, self.frozen_nodes, self.added, self.frozen))

    def __bool__(self) -> bool:
        return self.shape or bool(self.owed)


class Injection:
    """Applies one inject event and collects what it changed, applied and skipped."""

    def __init__(self, run: RunState, event: TimelineEvent) -> None:
        self.run = run
        self.event = event
        self.changed = {code: InjectedChanges([], [], [], [], []) for code in run.network.ledgers}
        self.applied = self.skipped = self.total = 0
        self.new_people: dict[str, Participant] = {}
        self.new_lines: dict[tuple[str, str, str], Trustline] = {}

    def apply(self) -> None:
        for number, effect in enumerate(self.event.effects):
            if number < EFFECTS_MOST and self._apply(effect):
                self.applied += 1
            else:
                self.skipped += 1
        self._settle()

    def _apply(self, effect: Effect) -> bool:
        """Apply one effect; False if it is impossible and was skipped."""
        match effect:
            case AddParticipant():
                return self._add(effect)
            case CreateTrustline(line):
                return self._create(line)
            case FreezeParticipant(participant, lines):
                return self._freeze(participant, lines)
            case InjectDebt():
                return self._owe(effect)
            case _:
                assert_never(effect)

    def _add(self, effect: AddParticipant) -> bool:
        new = effect.participant
        if new.id in self.run.network.people.index or new.id in self.new_people:
            return False
        self.new_people[new.id] = new
        for line in effect.lines:
            self._create(line)
        for changed in self.changed.values():
            changed.nodes.append(Person(new.id, new.name, new.type.value))
        return True

    def _create(self, line: Trustline) -> bool:
        network, ends = self.run.network, (line.creditor, line.debtor)
        ledger, key = network.ledgers.get(line.equivalent), (line.equivalent, line.creditor, line.debtor)
        known = all(end in network.people.index or end in self.new_people for end in ends) and ends[0] != ends[1]
        if ledger is None or not known or not 0 < line.limit <= MOST or key in self.new_lines:
            return False
        h = ledger.book.line(*ends)
        if h is None:
            self.new_lines[key] = line
        elif ledger.book.status[h] is LineStatus.CLOSED:
            ledger.reopen(h, line.limit)
        else:
            return False
        self.changed[line.equivalent].added.append(ends)
        return True

    def _settle(self) -> None:
        """Rebuild the network once with all additions so far."""
        if self.new_people or self.new_lines:
            self.run.network.extend(self.new_people.values(), self.new_lines.values())
            self.new_people, self.new_lines = {}, {}

    def _freeze(self, participant: str, lines: bool) -> bool:
        self._settle()
        network = self.run.network
        if participant not in network.people.index:
            return False
        names = network.people.names
        for code, frozen in network.freeze(participant, lines).items():
            book, changed = network.ledgers[code].book, self.changed[code]
            changed.frozen_nodes.append(participant)
            changed.frozen += [(names[book.creditor[h]], names[book.debtor[h]]) for h in frozen]
        return True

    def _owe(self, effect: InjectDebt) -> bool:
        self._settle()
        ledger = self.run.network.ledgers.get(effect.equivalent)
        h = None if ledger is None else ledger.book.line(effect.creditor, effect.debtor)
        if ledger is None or h is None or effect.amount <= 0 or ledger.book.status[h] is not LineStatus.ACTIVE:
            return False
        book, most = ledger.book, self.event.most
        if book.owed[h] + effect.amount > book.limit[h] or (most is not None and self.total + effect.amount > most):
            return False
        book.move(h, effect.amount)
        ledger.expect(book.debtor[h], book.creditor[h], effect.amount)
        self.total += effect.amount
        self.changed[effect.equivalent].owed.append((effect.creditor, effect.debtor))
        return True

    def events(self) -> Iterator[Event]:
        for code, changed in self.changed.items():
            book = self.run.network.ledgers[code].book
            owed = tuple(event_parts.edge_patch(book, _line(book.line(*ends))) for ends in dict.fromkeys(changed.owed))
            if changed.shape:
                yield self._topology(code, changed)
            if owed:
                yield TopologyChanged(self.run.tick, code, TopologyPayload(edge_patch=owed), "inject_debt")

    def _topology(self, code: str, changed: InjectedChanges) -> TopologyChanged:
        payload = TopologyPayload(
            added_nodes=tuple(changed.nodes),
            frozen_nodes=tuple(changed.frozen_nodes),
            added_edges=self._views(code, changed.added),
            frozen_edges=self._views(code, changed.frozen),
        )
        return TopologyChanged(self.run.tick, code, payload, "inject")

    def _views(self, code: str, lines: list[tuple[str, str]]) -> tuple[LineView, ...]:
        book = self.run.network.ledgers[code].book
        return tuple(event_parts.line_view(book, _line(book.line(*ends))) for ends in lines)


def _line(h: int | None) -> int:
    assert h is not None
    return h


def apply_event(run: RunState, event: TimelineEvent) -> Iterator[Event]:
    """Apply one due event."""
    facts: dict[str, Json] = {
        "event_index": event.index,
        "time": event.time,
        "description": event.description,
        "metadata": event.metadata,
        "kind": event.type.value,
    }
    match event.type:
        case EventType.STRESS | EventType.PAYMENT | EventType.CLEARING:
            return
        case EventType.NOTE:
            pass
        case EventType.INJECT if not run.settings.enable_inject:
            facts["ignored"] = "inject_disabled"
        case EventType.INJECT if run.config.engine == "external":
            facts["ignored"] = "outside_ledger"
        case EventType.INJECT:
            injection = Injection(run, event)
            injection.apply()
            yield from injection.events()
            facts |= {"applied": injection.applied, "skipped": injection.skipped, "total": text(injection.total)}
    yield Note(run.tick, run.sim_time_ms, facts)
