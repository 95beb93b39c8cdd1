"""What a gateway hands over, made fit to be decided upon and written down.

A gateway is somebody else's program. Whatever it hands over for a truck, NaN, text, half an object, concerns that truck
alone: a report that cannot be read counts as one, and everything else of the same tick is heard. What goes on is in the
integers of the engine, as a journal gives it back, so that a tick decides the same when it is computed again.
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

# Of one tick: more than all trucks of a hall say between two.
MOST_REPORTS = 10_000
# No operation has a longer name: that of its task, and a few words.
MOST_OPERATION = 2 * NAME_BYTES


class GatewayFailed(InputRefused):
    """A gateway handed over what is nothing of the kind. Facts: `problem`."""

    code = "gateway_failed"


class Heard(Struct, frozen=True):
    """What a gateway handed over, as a tick takes it."""

    reports: tuple[TruckReport, ...] = ()
    done: tuple[str | OperationDone, ...] = ()


def heard(handed: object) -> Heard:
    """What came in; raises `GatewayFailed` where it cannot be told what it is about."""
    if not isinstance(handed, Received):
        raise GatewayFailed(f"poll() gives a Received, not {type(handed).__name__}", problem="poll")
    for name, value in (("reports", handed.reports), ("done", handed.done)):
        if not isinstance(value, tuple | list | ReportBatch):
            raise GatewayFailed(f"{name} of poll() is a tuple, not {type(value).__name__}", problem=name)
        if len(value) > MOST_REPORTS:
            raise GatewayFailed(f"{name} of poll() has {len(value)} entries; at most {MOST_REPORTS}", problem=name)
    done = tuple(told for one in handed.done if (told := _over(one)) is not None)
    if isinstance(handed.reports, ReportBatch):
        return Heard(handed.reports.reports, done)
    return Heard(tuple(map(_read, handed.reports)), done)


def _over(one: object) -> str | OperationDone | None:
    """A truck or an operation that can be written down; None for anything else, which nothing can be done about."""
    if isinstance(one, str):
        return one if is_name(one) else None
    try:
        told = msgspec.convert(msgspec.to_builtins(one), OperationDone)
        msgspec.json.encode(told)
    except Exception:
        return None
    named = told.operation_id is msgspec.UNSET or len(told.operation_id) <= MOST_OPERATION
    return told if is_name(told.robot_id) and named else None


def _read(state: object) -> TruckReport:
    """The report as a journal gives it back, or one that says that nothing can be read."""
    try:
        told = msgspec.convert(msgspec.to_builtins(state, builtin_types=(Decimal,)), RobotState)
        if is_name(told.robotId):
            report = report_of(told)
            msgspec.json.encode(report)
            return report
    except Exception:
        # Whatever its members do when they are looked at.
        return unreadable(_name_of(state))
    return unreadable("")


def _name_of(state: object) -> str:
    """Of which truck a report is that cannot be read; of none where that cannot be read either."""
    try:
        name = getattr(state, "robotId", "")
    except Exception:
        return ""
    return name if isinstance(name, str) and is_name(name) else ""


def is_name(one: object) -> bool:
    """Text that can be written down, and is no longer than a name of a truck may be: whatever else it is, the journal
    would keep it."""
    try:
        return isinstance(one, str) and len(one) <= NAME_BYTES and 0 < len(one.encode()) <= NAME_BYTES
    except UnicodeEncodeError:
        return False
