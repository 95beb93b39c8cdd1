"""What a world tells: its events in the order of a minute, with everything a reader needs to place them."""

from operator import attrgetter
from typing import Any

from pendula.actions.configuration import Setting
from pendula.actions.events import Diagnostic, End, Event, Interrupted, Rejection, Start, VisibilityChange
from pendula.actions.model import Code, KnowledgeItem, Resume, Reveal
from pendula.actions.rules.locks import Action
from pendula.actions.rules.validation import Fault

by_admission = attrgetter("admission")
Noted = tuple[int, int, Action, dict[str, Any], bool]


class Telling:
    """The part of a world that speaks. Interrupts and reveals are noted while a minute goes on and told in order."""

    __slots__ = (
        "_interrupts",
        "_place",
        "_placed",
        "_reveals",
        "epoch",
        "epoch_start",
        "minute",
        "next_event",
        "recording",
        "setting",
        "told",
    )

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.recording = True  # without, nothing but rejections and diagnostics is told
        self.told: list[Event] = []
        self.minute = 0
        self.epoch = 0
        self.epoch_start = 0
        self.next_event = 0
        self._placed = -1
        self._place: tuple[int, str, int, int] = (0, "", 0, 0)
        self._interrupts: list[Noted] = []
        self._reveals: list[Noted] = []

    def note_interrupt(self, action: Action, by: str, resume: Resume) -> None:
        meta = {
            "segment": action.segment,
            "d_rem": action.remaining,
            "by": by,
            "resume": resume,
            "admission": action.admission,
        }
        self._interrupts.append((action.admission, len(self._interrupts), action, meta, action.seen))

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
        self._reveals.append((action.admission, len(self._reveals), action, meta, pc))

    def tell_of_changes(self, minute: int) -> None:
        """Interrupts, then what came to light, each by admission and as it came."""
        for noted, kind in ((self._interrupts, Interrupted), (self._reveals, VisibilityChange)):
            if len(noted) > 1:
                noted.sort(key=lambda one: one[:2])
            if self.recording:
                for _, _, action, meta, pc in noted:
                    t, at, epoch, slot = self._place if self._placed == minute else self._find_place(minute)
                    instance = action.instance
                    seq = self.next_event
                    self.next_event = seq + 1
                    self.told.append(
                        kind(seq, instance.id, t, at, epoch, slot, instance.actor, instance.verb, pc, meta)
                    )
            noted.clear()

    def tell_of_starts(self, started: list[Action], minute: int) -> None:
        started.sort(key=by_admission)
        t, at, epoch, slot = self._place if self._placed == minute else self._find_place(minute)
        shift, seq, tell = self.epoch_start, self.next_event, self.told.append
        for action in started:
            instance = action.instance
            meta: dict[str, Any] = {
                "segment": action.segment,
                "d": action.remaining,
                "t_end": action.t_end - shift,
                "waited": minute - action.joined,
                "admission": action.admission,
            }
            if action.meta is not None and action.segment == 0:
                meta.update(action.meta)
            tell(Start(seq, instance.id, t, at, epoch, slot, instance.actor, instance.verb, action.seen, meta))
            seq += 1
        self.next_event = seq

    def tell_of_end(self, action: Action, minute: int) -> None:
        t, at, epoch, slot = self._place if self._placed == minute else self._find_place(minute)
        instance = action.instance
        seq = self.next_event
        self.next_event = seq + 1
        meta = {"segment": action.segment, "admission": action.admission}
        self.told.append(End(seq, instance.id, t, at, epoch, slot, instance.actor, instance.verb, action.seen, meta))

    def reject(self, action_id: str | None, fault: Fault) -> None:
        t = self.minute - self.epoch_start
        self.told.append(Rejection(action_id, fault.code, fault.message, t, self.setting.first_epoch + self.epoch))

    def diagnose(self, code: Code, action_id: str | None, message: str, by: str | None = None) -> None:
        t = self.minute - self.epoch_start
        self.told.append(Diagnostic(code, action_id, t, message, self.setting.first_epoch + self.epoch, by))

    def _find_place(self, minute: int) -> tuple[int, str, int, int]:
        """Minute of the epoch, ISO time, epoch, slot: the same for all events of a minute."""
        setting = self.setting
        t = minute - self.epoch_start
        slot = min(t // setting.slot_minutes, setting.last_slot)
        self._place = (t, setting.display(minute), setting.first_epoch + self.epoch, slot)
        # The last minute of an epoch is the first of the next: nothing is remembered of it.
        self._placed = -1 if t % setting.horizon == 0 else minute
        return self._place
