"""Validate what a gateway returns, and convert it for ticks and the journal.

A gateway is third-party code. Bad values for a truck, such as NaN, text or half an object, affect that truck alone: an
unreadable report is kept as such, and all other reports of the tick are applied. The result has the integers of the
engine, exactly as a journal restores them, so that a replay decides the same.
"""

from decimal import Decimal

import msgspec
from msgspec import Struct

from pendula.fleet.contracts.traffic import RobotState
from pendula.fleet.gateway.protocol import Received
from pendula.fleet.gateway.reports import ReportBatch, report_of
from pendula.fleet.model import NAME_BYTES
from pendula.fleet.tasks import OperationDone
from pendula.fleet.tick.observing import TruckReport, unreadable
from pendula.kernel.errors import InputRefused

# Entries in one tick; more than all trucks of a hall report between two ticks.
MOST_REPORTS = 10_000
# Bytes of an operation id: the id of its task and a suffix.
MOST_OPERATION = 2 * NAME_BYTES


class GatewayFailed(InputRefused):
    """A gateway returned something other than reports. Facts: `problem`."""

    code = "gateway_failed"


class GatewayInput(Struct, frozen=True):
    """Validated input from a gateway."""

    reports: tuple[TruckReport, ...] = ()
    done: tuple[str | OperationDone, ...] = ()


def read_gateway(received: object) -> GatewayInput:
    """Validate the result of `poll`; raises `GatewayFailed` if it is not a `Received`."""
    if not isinstance(received, Received):
        raise GatewayFailed(f"poll() must return a Received, not {type(received).__name__}", problem="poll")
    for name, value in (("reports", received.reports), ("done", received.done)):
        if not isinstance(value, tuple | list | ReportBatch):
            raise GatewayFailed(f"{name} of poll() must be a tuple, not {type(value).__name__}", problem=name)
        if len(value) > MOST_REPORTS:
            raise GatewayFailed(f"{name} of poll() has {len(value)} entries; at most {MOST_REPORTS}", problem=name)
    done = tuple(valid for entry in received.done if (valid := _read_done(entry)) is not None)
    if isinstance(received.reports, ReportBatch):
        return GatewayInput(received.reports.reports, done)
    return GatewayInput(tuple(map(_read, received.reports)), done)


def _read_done(entry: object) -> str | OperationDone | None:
    """A truck or an operation that can be encoded; None for anything else."""
    if isinstance(entry, str):
        return entry if is_name(entry) else None
    try:
        done = msgspec.convert(msgspec.to_builtins(entry), OperationDone)
        msgspec.json.encode(done)
    except Exception:
        return None
    fits = done.operation_id is msgspec.UNSET or len(done.operation_id) <= MOST_OPERATION
    return done if is_name(done.robot_id) and fits else None


def _read(state: object) -> TruckReport:
    """The report as a journal restores it, or an unreadable one."""
    try:
        converted = msgspec.convert(msgspec.to_builtins(state, builtin_types=(Decimal,)), RobotState)
        if is_name(converted.robotId):
            report = report_of(converted)
            msgspec.json.encode(report)
            return report
    except Exception:
        # Reading a member of a foreign object may raise anything.
        return unreadable(_name_of(state))
    return unreadable("")


def _name_of(state: object) -> str:
    """The truck of an unreadable report; empty if that is unreadable too."""
    try:
        name = getattr(state, "robotId", "")
    except Exception:
        return ""
    return name if isinstance(name, str) and is_name(name) else ""


def is_name(value: object) -> bool:
    """Whether a value is text that can be encoded and is short enough for the name of a truck."""
    try:
        return isinstance(value, str) and len(value) <= NAME_BYTES and 0 < len(value.encode()) <= NAME_BYTES
    except UnicodeEncodeError:
        return False
