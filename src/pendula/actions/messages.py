"""Commands and events of a world, requests from outside, and questions to user code.

Every event of the world has its time (`t` of an `epoch`, the ISO time `at`, the `slot`), its actor, and in `pc` whether
the player character learned of it at that moment. A run keeps hundreds of thousands of them and they never refer to one
another, so the cycle collector skips them (`gc=False`).
"""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct

from pendula.actions.configuration import Setting
from pendula.actions.model import Code, Hold, Instance, Name
from pendula.actions.rules.validation import Fault, malformed
from pendula.actions.sentences import reason_sentence
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside


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


class ActionRequest(Struct, frozen=True):
    """A validated request."""

    kind: Literal["interrupt", "cancel", "resume"]
    target: str
    minute: int
    priority: int = 0
    source: str = "outside"
    hold_min: int = 0
    cause: str | None = None  # the preempting action that holds the target until it ends
    force: bool = False


class InterruptForm(Struct, frozen=True, forbid_unknown_fields=True):
    target: Name
    priority: int
    at: str | None = None
    t: int | None = None
    source: str = "outside"
    hold_min: Hold = 0


class CommandForm(Struct, frozen=True, forbid_unknown_fields=True):
    at: str | None = None
    t: int | None = None
    cancel: Name | None = None
    resume: Name | None = None
    force: bool = False


def read_requests(
    interrupts: Iterable[Json], commands: Iterable[Json], setting: Setting
) -> Iterator[ActionRequest | Fault]:
    """Each request, or its fault."""
    for raws, kind in ((interrupts, InterruptForm), (commands, CommandForm)):
        for raw in raws:
            try:
                form: Any = msgspec.convert(raw, kind)
            except msgspec.ValidationError as fault:
                yield malformed(_code_of(kind), fault, raw, kind)
            else:
                yield request_of(form, setting)


def _code_of(kind: type[Struct]) -> Code:
    return Code.INVALID_INTERRUPT if kind is InterruptForm else Code.INVALID_COMMAND


def request_of(form: InterruptForm | CommandForm, setting: Setting) -> ActionRequest | Fault:
    code = _code_of(type(form))
    minute = _minute(form, setting, code)
    if isinstance(minute, Fault):
        return minute
    match form:
        case InterruptForm():
            return ActionRequest("interrupt", form.target, minute, form.priority, form.source, form.hold_min)
        case CommandForm(cancel=str(target), resume=None, force=force):
            return ActionRequest("cancel", target, minute, force=force)
        case CommandForm(cancel=None, resume=str(), force=True):
            return Fault(code, "force_without_cancel")
        case CommandForm(cancel=None, resume=str(target)):
            return ActionRequest("resume", target, minute)
    return Fault(code, "no_single_command")


def _minute(form: InterruptForm | CommandForm, setting: Setting, code: Code) -> int | Fault:
    """The minute of a request, or the fault of its time."""
    if (form.t is None) == (form.at is None):
        return Fault(code, "no_single_time")
    minute = form.t
    if minute is None:
        read = setting.minute_of(form.at)
        if isinstance(read, Fault):
            return Fault(code, read.reason, read.facts)
        minute = read[0]
    if not 0 <= minute <= setting.latest:
        return Fault(code, "minute_outside_of_run", {"minute": minute, "latest": setting.latest})
    return minute


class NoAnswers:
    """Answers for a world without user code: no modifiers, no follow-ups."""

    def ask(self, name: str, question: Json) -> Json:  # noqa: ARG002 - the protocol's signature
        return None


NO_FACTOR = Decimal("NaN")
NO_MODIFIERS: Mapping[str, Decimal] = {}


def ask_modifiers(outside: Outside, setting: Setting, instance: Instance, minute: int) -> Mapping[str, Decimal]:
    """Named factors for one submission. A factor that is not a number becomes NaN, which rejects the instance."""
    if not setting.options.ask_modifiers:
        return NO_MODIFIERS
    question: dict[str, Json] = {
        "action_id": instance.id,
        "actor": instance.actor,
        "verb": instance.verb,
        "t": minute,
        "params": instance.params,
    }
    answer = outside.ask("modifiers", question)
    if not isinstance(answer, Mapping):
        return NO_MODIFIERS
    return {name: _factor(value) for name, value in sorted(answer.items())}


def _factor(value: Json) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    return NO_FACTOR
