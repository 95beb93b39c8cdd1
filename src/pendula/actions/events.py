"""What goes into a world and what comes out: commands and events, as they stand in journals and streams.

Every event of the world says when it was (`t` of an `epoch`, the ISO time `at`, the `slot`), whose it is, and by `pc`
whether the player character learned of it at that moment. Events of the world are kept by the hundred thousand and hold
plain data, never one another: the cycle collector does not look at them (`gc=False`).
"""

from typing import Any, TypeAlias

from msgspec import Struct

from pendula.actions.model import Code
from pendula.actions.sentences import reason_sentence
from pendula.kernel.canonical import Json


class Submit(Struct, frozen=True, tag="submit", forbid_unknown_fields=True):
    """Instances to be validated one by one; a bad one is rejected and disturbs nobody."""

    actions: tuple[Any, ...]


class Request(Struct, frozen=True, tag="request", forbid_unknown_fields=True):
    """Interrupts, cancellations and resumptions, each `{at | t, …}`; a malformed one is a diagnostic."""

    interrupts: tuple[Json, ...] = ()
    commands: tuple[Json, ...] = ()


class Advance(Struct, frozen=True, tag="advance", forbid_unknown_fields=True):
    """Let everything happen up to minute `to` of the run. At the end of an epoch only ends happen; the rest of that
    minute belongs to the next epoch."""

    to: int


Command: TypeAlias = Submit | Request | Advance


class Happening(Struct, frozen=True, gc=False):
    """What every event of the world says; which it is, and what `meta` holds, is for its kind to say."""

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


class Start(Happening, frozen=True, gc=False, tag="start"):
    """A segment begins. `meta`: segment, d, t_end, waited, admission; more at the first start of an instance."""


class End(Happening, frozen=True, gc=False, tag="end"):
    """An instance is done. `meta`: segment, admission."""


class Interrupted(Happening, frozen=True, gc=False, tag="interrupt"):
    """A segment was broken off. `meta`: segment, d_rem, by, resume, admission."""


class VisibilityChange(Happening, frozen=True, gc=False, tag="visibility_change"):
    """Something came to light. `meta`: knowledge, from_scope, to_scope, visibility_to, reveals, admission."""


class Rejection(Struct, frozen=True, tag="rejection"):
    """An instance that does not take part, and why: a reason and its facts. Not part of the world log."""

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
    """Something that was asked for and did not happen, or was not understood. Not part of the world log."""

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
