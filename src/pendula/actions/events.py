"""Commands and events of a world, in the form of journals and streams.

Every event of the world has its time (`t` of an `epoch`, the ISO time `at`, the `slot`), its actor, and in `pc` whether
the player character learned of it at that moment. A run keeps hundreds of thousands of them and they never refer to one
another, so the cycle collector skips them (`gc=False`).
"""

from typing import Any, TypeAlias

from msgspec import Struct

from pendula.actions.model import Code
from pendula.actions.sentences import reason_sentence
from pendula.kernel.canonical import Json


class Submit(Struct, frozen=True, tag="submit", forbid_unknown_fields=True):
    """Instances, validated one by one; an invalid one is rejected without effect on the others."""

    actions: tuple[Any, ...]


class Request(Struct, frozen=True, tag="request", forbid_unknown_fields=True):
    """Interrupts, cancellations and resumptions, each `{at | t, …}`; a malformed one becomes a diagnostic."""

    interrupts: tuple[Json, ...] = ()
    commands: tuple[Json, ...] = ()


class Advance(Struct, frozen=True, tag="advance", forbid_unknown_fields=True):
    """Advance to minute `to` of the run. At the end of an epoch only ends happen; the rest of that minute belongs to
    the next epoch."""

    to: int


Command: TypeAlias = Submit | Request | Advance


class ActionEvent(Struct, frozen=True, gc=False):
    """The members that all events of the world share; `meta` depends on the kind."""

    seq: int
    action_id: str
    t: int
    at: str
    epoch: int
    slot: int
    actor: str
    verb: str
    pc: bool
    meta: dict[str, Any]


class Start(ActionEvent, frozen=True, gc=False, tag="start"):
    """A segment begins. `meta`: segment, d, t_end, waited, admission; more at the first start of an instance."""


class End(ActionEvent, frozen=True, gc=False, tag="end"):
    """An action has ended. `meta`: segment, admission."""


class Interrupted(ActionEvent, frozen=True, gc=False, tag="interrupt"):
    """A segment was interrupted. `meta`: segment, d_rem, by, resume, admission."""


class VisibilityChange(ActionEvent, frozen=True, gc=False, tag="visibility_change"):
    """A knowledge item changed. `meta`: knowledge, from_scope, to_scope, visibility_to, reveals, admission."""


class Rejection(Struct, frozen=True, tag="rejection"):
    """A rejected instance, with the reason and its facts. Not part of the world log."""

    action_id: str | None
    code: Code
    reason: str
    facts: dict[str, Any]
    t: int
    epoch: int

    @property
    def message(self) -> str:
        return reason_sentence(self.reason, self.facts)


class Diagnostic(Struct, frozen=True, tag="diagnostic"):
    """A request without effect, or malformed. Not part of the world log."""

    code: Code
    action_id: str | None
    t: int
    reason: str
    facts: dict[str, Any]
    epoch: int
    by: str | None = None

    @property
    def message(self) -> str:
        return reason_sentence(self.reason, {**self.facts, "action": self.action_id, "by": self.by})


class EpochBegan(Struct, frozen=True, tag="epoch"):
    """A new epoch: the header of its chunk of the player's log."""

    epoch: int
    start_at: str
    carried_in: tuple[dict[str, Any], ...]


WorldEvent: TypeAlias = Start | End | Interrupted | VisibilityChange
Event: TypeAlias = WorldEvent | Rejection | Diagnostic | EpochBegan
WORLD_EVENTS = (Start, End, Interrupted, VisibilityChange)
