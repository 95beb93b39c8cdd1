"""The clock of a world, and its events, numbered in the order of a minute."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any

import msgspec

from pendula.actions.configuration import Setting
from pendula.actions.messages import (
    WORLD_EVENTS,
    Diagnostic,
    End,
    EpochBegan,
    Event,
    Interrupted,
    Rejection,
    Start,
    VisibilityChange,
)
from pendula.actions.model import Code, Instance, KnowledgeItem, Resume, Reveal, Scope
from pendula.actions.rules.locks import Action
from pendula.actions.rules.validation import Fault
from pendula.kernel.canonical import Json


class Clock:
    """Minutes count from the start of the run; the last minute of an epoch is the first of the next."""

    __slots__ = ("boundary", "epoch", "epoch_start", "horizon", "minute")

    def __init__(self, horizon: int) -> None:
        self.horizon = horizon
        self.set(0, 0)

    def set(self, minute: int, epoch: int) -> None:
        self.minute = minute
        self.epoch = epoch
        self.epoch_start = epoch * self.horizon
        self.boundary = self.epoch_start + self.horizon

    def begin_epoch(self) -> None:
        """Move to the next epoch; the caller sets the minute."""
        self.epoch += 1
        self.epoch_start = self.boundary
        self.boundary += self.horizon


by_admission = attrgetter("admission")
# Admission number, order of arrival, instance, `meta`, `pc`.
PendingChange = tuple[int, int, Instance, dict[str, Any], bool]
NO_ACTION = Instance("", "", "")
NO_FACTS: Mapping[str, Json] = {}
AFTER_ALL = 1 << 62  # above every admission number


class EventWriter:
    """Interrupts and visibility changes are collected during a minute and written in order."""

    def __init__(self, setting: Setting, clock: Clock) -> None:
        self._setting = setting
        self._clock = clock
        self._written: list[Event] = []
        self._published = 0  # how many of them the listener has
        self._placed = -1
        self._place: tuple[int, str, int, int] = (0, "", 0, 0)
        self.recording = True  # if not, only rejections, diagnostics and epochs are written
        self.next_event = 0
        self.interrupts: list[PendingChange] = []
        self.reveals: list[PendingChange] = []

    def take(self) -> tuple[Event, ...]:
        """The events since the last call."""
        events = tuple(self._written)
        self._written = []
        self._published = 0
        return events

    def publish(self, listener: Callable[[Sequence[Event]], None]) -> None:
        """Give the listener the events since the last call."""
        new = self._written[self._published :]
        self._published += len(new)
        if new:
            listener(new)

    def note_interrupt(self, action: Action, by: str, resume: Resume) -> None:
        meta = {
            "segment": action.segment,
            "d_rem": action.remaining,
            "by": by,
            "resume": resume,
            "admission": action.admission,
        }
        self.interrupts.append((action.admission, len(self.interrupts), action.instance, meta, action.seen))

    def note_reveal(
        self, action: Action, reveal: Reveal, before: KnowledgeItem | None, after: KnowledgeItem, pc: bool
    ) -> None:
        meta = {
            "knowledge": reveal.id,
            "from_scope": before.scope if before else "private",
            "to_scope": after.scope,
            "visibility_to": list(after.visibility_to),
            "reveals": list(reveal.reveals),
            "admission": action.admission,
        }
        self.reveals.append((action.admission, len(self.reveals), action.instance, meta, pc))

    def note_expiry(self, item: KnowledgeItem, pc: bool) -> None:
        """Written after the reveals of the minute, without an action."""
        meta: dict[str, Any] = {
            "knowledge": item.id,
            "from_scope": item.scope,
            "to_scope": Scope.REDACTED,
            "visibility_to": [],
            "reveals": [],
            "reason": "expired",
        }
        who = NO_ACTION if item.source is None else msgspec.structs.replace(NO_ACTION, actor=item.source)
        self.reveals.append((AFTER_ALL, len(self.reveals), who, meta, pc))

    def write_changes(self, minute: int) -> None:
        """Write the interrupts, then the visibility changes, each by admission and order of arrival."""
        for noted, kind in ((self.interrupts, Interrupted), (self.reveals, VisibilityChange)):
            if len(noted) > 1:
                noted.sort(key=lambda change: change[:2])
            if self.recording:
                for _, _, instance, meta, pc in noted:
                    t, at, epoch, slot = self._place if self._placed == minute else self._find_place(minute)
                    seq = self.next_event
                    self.next_event = seq + 1
                    self._written.append(
                        kind(seq, instance.id, t, at, epoch, slot, instance.actor, instance.verb, pc, meta)
                    )
            noted.clear()

    def write_starts(self, started: list[Action], minute: int) -> None:
        started.sort(key=by_admission)
        t, at, epoch, slot = self._place if self._placed == minute else self._find_place(minute)
        shift, seq, write = self._clock.epoch_start, self.next_event, self._written.append
        for action in started:
            instance = action.instance
            meta: dict[str, Any] = {
                "segment": action.segment,
                "d": action.remaining,
                "t_end": action.t_end - shift,
                "waited": minute - action.joined,
                "admission": action.admission,
            }
            if instance.params is not None:
                meta["params"] = instance.params
            if action.meta is not None and action.segment == 0:
                meta.update(action.meta)
            write(Start(seq, instance.id, t, at, epoch, slot, instance.actor, instance.verb, action.seen, meta))
            seq += 1
        self.next_event = seq

    def write_end(self, action: Action, minute: int) -> None:
        t, at, epoch, slot = self._place if self._placed == minute else self._find_place(minute)
        instance = action.instance
        seq = self.next_event
        self.next_event = seq + 1
        meta: dict[str, Any] = {"segment": action.segment, "admission": action.admission}
        if instance.params is not None:
            meta["params"] = instance.params
        self._written.append(
            End(seq, instance.id, t, at, epoch, slot, instance.actor, instance.verb, action.seen, meta)
        )

    def write_forced_end(self, action: Action, minute: int) -> None:
        """Write a forced end with the remaining minutes, sorted by admission among the ends of its minute."""
        written, end = self._written, len(self._written)
        self.write_end(action, minute)
        forced = written.pop()
        assert isinstance(forced, End)
        forced.meta.update({"forced": True, "d_rem": action.remaining})
        place = end
        for number in range(end - 1, self._published - 1, -1):
            event = written[number]
            if isinstance(event, End) and (event.t, event.epoch) == (forced.t, forced.epoch):
                place = number if event.meta["admission"] > action.admission else place
            elif isinstance(event, WORLD_EVENTS):
                break
        later = [number for number in range(place, end) if isinstance(written[number], End)]
        if later:
            forced = msgspec.structs.replace(forced, seq=forced.seq - len(later))
        for number in later:
            event = written[number]
            assert isinstance(event, End)
            written[number] = msgspec.structs.replace(event, seq=event.seq + 1)
        written.insert(place, forced)

    def reject(self, action_id: str | None, fault: Fault) -> None:
        self._written.append(Rejection(action_id, fault.code, fault.reason, fault.facts, self._t(), self._epoch()))

    def diagnose(
        self,
        code: Code,
        action_id: str | None,
        reason: str,
        facts: Mapping[str, Json] = NO_FACTS,
        *,
        by: str | None = None,
    ) -> None:
        self._written.append(Diagnostic(code, action_id, self._t(), reason, {**facts}, epoch=self._epoch(), by=by))

    def write_epoch(self, running: list[Action]) -> None:
        self._written.append(self.header(running))

    def header(self, running: list[Action]) -> EpochBegan:
        """The header of the current epoch, with the actions carried into it."""
        start = self._clock.epoch_start
        carried: tuple[dict[str, Any], ...] = tuple(
            {"action_id": action.instance.id, "remaining": action.t_end - start, "pc": action.seen}
            for action in running
        )
        return EpochBegan(self._epoch(), self._setting.display(start), carried)

    def _t(self) -> int:
        """The current minute of the epoch."""
        return self._clock.minute - self._clock.epoch_start

    def _epoch(self) -> int:
        return self._setting.first_epoch + self._clock.epoch

    def _find_place(self, minute: int) -> tuple[int, str, int, int]:
        """Minute of the epoch, ISO time, epoch and slot, cached for the events of a minute."""
        setting = self._setting
        t = minute - self._clock.epoch_start
        slot = min(t // setting.slot_minutes, setting.last_slot)
        self._place = (t, setting.display(minute), self._epoch(), slot)
        # The last minute of an epoch is the first of the next, with another place: it is not cached.
        self._placed = -1 if t % setting.horizon == 0 else minute
        return self._place
