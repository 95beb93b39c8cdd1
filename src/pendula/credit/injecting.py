"""What an event of the timeline does when it is due: notes, and injections where they are allowed."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, assert_never

from msgspec import UNSET, Struct

from pendula.credit import telling
from pendula.credit.events import Event, LineView, Note, Person, TopologyChanged, TopologyPayload
from pendula.credit.model import (
    AddParticipant,
    CreateTrustline,
    Effect,
    EventType,
    FreezeParticipant,
    InjectDebt,
    LineStatus,
    TimelineEvent,
    Trustline,
)
from pendula.credit.money import MOST, text
from pendula.kernel.canonical import Json

if TYPE_CHECKING:
    from pendula.credit.engine import Run

EFFECTS_MOST = 500


class Changed(Struct):
    """What an injection changed in one equivalent; lines by the ids of their ends."""

    nodes: list[Person]
    frozen_nodes: list[str]
    added: list[tuple[str, str]]
    frozen: list[tuple[str, str]]
    owed: list[tuple[str, str]]

    def __bool__(self) -> bool:
        return any((self.nodes, self.frozen_nodes, self.added, self.frozen, self.owed))


class Injection:
    """One inject event at work: what it has changed, applied and skipped so far."""

    def __init__(self, run: "Run", event: TimelineEvent) -> None:
        self.run = run
        self.event = event
        self.changed = {code: Changed([], [], [], [], []) for code in run.network.desks}
        self.applied = self.skipped = self.total = 0

    def apply(self) -> None:
        for number, effect in enumerate(self.event.effects):
            if number < EFFECTS_MOST and self._apply(effect):
                self.applied += 1
            else:
                self.skipped += 1

    def _apply(self, effect: Effect) -> bool:
        """Whether it could be done; what cannot is left out and disturbs nothing else."""
        match effect:
            case AddParticipant():
                return self._add(effect)
            case CreateTrustline(line):
                return self._create([line])
            case FreezeParticipant(participant, lines):
                return self._freeze(participant, lines)
            case InjectDebt():
                return self._owe(effect)
            case _:
                assert_never(effect)

    def _add(self, effect: AddParticipant) -> bool:
        network, new = self.run.network, effect.participant
        if new.id in network.people.index:
            return False
        network.extend([new], ())
        self._create([line for line in effect.lines if self._possible(line)])
        for changed in self.changed.values():
            changed.nodes.append(Person(new.id, new.name, new.type.value))
        return True

    def _possible(self, line: Trustline) -> bool:
        network, ends = self.run.network, (line.creditor, line.debtor)
        desk = network.desks.get(line.equivalent)
        known = all(end in network.people.index for end in ends) and ends[0] != ends[1]
        return desk is not None and known and 0 < line.limit <= MOST and desk.book.line(*ends) is None

    def _create(self, lines: list[Trustline]) -> bool:
        fresh: dict[tuple[str, str, str], Trustline] = {}
        for line in lines:
            if self._possible(line):
                fresh.setdefault((line.equivalent, line.creditor, line.debtor), line)
        if not fresh:
            return False
        self.run.network.extend((), fresh.values())
        for code, creditor, debtor in fresh:
            self.changed[code].added.append((creditor, debtor))
        return True

    def _freeze(self, participant: str, lines: bool) -> bool:
        network = self.run.network
        if participant not in network.people.index:
            return False
        names = network.people.names
        for code, frozen in network.freeze(participant, lines).items():
            book, changed = network.desks[code].book, self.changed[code]
            changed.frozen_nodes.append(participant)
            changed.frozen += [(names[book.creditor[h]], names[book.debtor[h]]) for h in frozen]
        return True

    def _owe(self, effect: InjectDebt) -> bool:
        desk = self.run.network.desks.get(effect.equivalent)
        h = None if desk is None else desk.book.line(effect.creditor, effect.debtor)
        if desk is None or h is None or effect.amount <= 0 or desk.book.status[h] is not LineStatus.ACTIVE:
            return False
        book, most = desk.book, self.event.most
        if book.owed[h] + effect.amount > book.limit[h] or (most is not None and self.total + effect.amount > most):
            return False
        book.move(h, effect.amount)
        desk.expect(book.debtor[h], book.creditor[h], effect.amount)
        self.total += effect.amount
        self.changed[effect.equivalent].owed.append((effect.creditor, effect.debtor))
        return True

    def events(self) -> Iterator[Event]:
        for code, changed in self.changed.items():
            if changed:
                book = self.run.network.desks[code].book
                patch = tuple(telling.edge_patch(book, _line(book.line(*ends))) for ends in dict.fromkeys(changed.owed))
                payload = TopologyPayload(
                    added_nodes=tuple(changed.nodes),
                    frozen_nodes=tuple(changed.frozen_nodes),
                    added_edges=self._views(code, changed.added),
                    frozen_edges=self._views(code, changed.frozen),
                    edge_patch=patch or UNSET,
                )
                yield TopologyChanged(self.run.tick, code, payload, "inject")

    def _views(self, code: str, lines: list[tuple[str, str]]) -> tuple[LineView, ...]:
        book = self.run.network.desks[code].book
        return tuple(telling.line_view(book, _line(book.line(*ends))) for ends in lines)


def _line(h: int | None) -> int:
    assert h is not None
    return h


def apply_event(run: "Run", event: TimelineEvent) -> Iterator[Event]:
    """Carry out one event that is due."""
    facts: dict[str, Json] = {
        "event_index": event.index,
        "time": event.time,
        "description": event.description,
        "metadata": event.metadata,
        "kind": event.type.value,
    }
    match event.type:
        case EventType.STRESS:
            return
        case EventType.NOTE:
            pass
        case EventType.PAYMENT | EventType.CLEARING:
            facts["ignored"] = f"events of type {event.type.value} are not interpreted"
        case EventType.INJECT if not run.settings.enable_inject:
            facts["ignored"] = "injections are switched off (SIMULATOR_REAL_ENABLE_INJECT)"
        case EventType.INJECT if run.config.engine == "external":
            facts["ignored"] = "the ledger of this run is that of an outside service"
        case EventType.INJECT:
            injection = Injection(run, event)
            injection.apply()
            yield from injection.events()
            facts |= {"applied": injection.applied, "skipped": injection.skipped, "total": text(injection.total)}
    yield Note(run.tick, run.sim_time_ms, facts)
