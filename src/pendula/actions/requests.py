"""Requests from outside to interrupt, cancel or resume an action in a minute."""

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from pendula.actions.configuration import Setting
from pendula.actions.model import Code, Hold, Name
from pendula.actions.rules.validation import Fault, malformed
from pendula.kernel.canonical import Json


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
    for raw in interrupts:
        yield _interrupt(raw, setting)
    for raw in commands:
        yield _command(raw, setting)


def _interrupt(raw: Json, setting: Setting) -> ActionRequest | Fault:
    try:
        form = msgspec.convert(raw, InterruptForm)
    except msgspec.ValidationError as fault:
        return malformed(Code.INVALID_INTERRUPT, fault, raw, InterruptForm)
    minute = _minute(form, setting, Code.INVALID_INTERRUPT)
    if isinstance(minute, Fault):
        return minute
    return ActionRequest("interrupt", form.target, minute, form.priority, form.source, form.hold_min)


def _command(raw: Json, setting: Setting) -> ActionRequest | Fault:
    try:
        form = msgspec.convert(raw, CommandForm)
    except msgspec.ValidationError as fault:
        return malformed(Code.INVALID_COMMAND, fault, raw, CommandForm)
    minute = _minute(form, setting, Code.INVALID_COMMAND)
    if isinstance(minute, Fault):
        return minute
    match form:
        case CommandForm(cancel=str(target), resume=None, force=force):
            return ActionRequest("cancel", target, minute, force=force)
        case CommandForm(cancel=None, resume=str(), force=True):
            return Fault(Code.INVALID_COMMAND, "force_without_cancel")
        case CommandForm(cancel=None, resume=str(target)):
            return ActionRequest("resume", target, minute)
    return Fault(Code.INVALID_COMMAND, "no_single_command")


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
