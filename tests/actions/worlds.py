"""Short forms of small worlds: definitions, submissions, and events as in the requirement document."""

from typing import Any

from pendula.actions import EpochResult, RunResult, run_epochs
from pendula.actions.messages import WorldEvent

EPOCH: dict[str, Any] = {"index": 0, "start_at": "2025-07-01T00:00:00", "end_at": "2025-07-02T00:00:00"}
NEXT_EPOCH: dict[str, Any] = {"index": 1, "start_at": "2025-07-02T00:00:00", "end_at": "2025-07-03T00:00:00"}


def lasting(minutes: int, *locks: str, **more: Any) -> dict[str, Any]:
    """A definition with exactly this duration for actors without skills."""
    given = {"base_duration_min": minutes, "effort": "medium", "interruptible": False, "locks": list(locks)}
    return {**given, **more}


def does(action_id: str, t: int | str, verb: str | None = None, **more: Any) -> dict[str, Any]:
    """A submission at a minute or an ISO time; the verb is the id unless given. It reveals nothing."""
    when = {"t": t} if isinstance(t, int) else {"submitted_at": t}
    return {"id": action_id, "actor": "ann", "verb": verb or action_id, "params": {}, "knowledge": [], **when, **more}


def document(defs: dict[str, Any], *actions: Any, **more: Any) -> dict[str, Any]:
    return {"epoch": EPOCH, "action_defs": defs, "actions_submitted": list(actions), **more}


def outcome(defs: dict[str, Any], *actions: Any, epochs: int = 1, **more: Any) -> RunResult:
    return run_epochs(more.pop("epoch", EPOCH), defs, list(actions), epochs, **more)


def day(defs: dict[str, Any], *actions: Any, **more: Any) -> EpochResult:
    return outcome(defs, *actions, **more).epochs[0]


def line(event: WorldEvent) -> str:
    return f"{event.t} {event.__struct_config__.tag} {event.action_id}"


def lines(result: EpochResult) -> list[str]:
    """`485 start A1`, one for each event."""
    return [line(event) for event in result.events]


def expected_lines(text: str) -> list[str]:
    """A golden list, its events separated by commas."""
    return [" ".join(part.split()) for part in text.split(",")]


def of(result: EpochResult, kind: str, action_id: str, segment: int = 0) -> WorldEvent:
    """The only event of a type, an action and a segment."""
    (found,) = [
        event
        for event in result.events
        if event.__struct_config__.tag == kind
        and event.action_id == action_id
        and event.meta.get("segment", segment) == segment
    ]
    return found


def codes(result: EpochResult) -> dict[str | None, str]:
    return {rejection.action_id: str(rejection.code) for rejection in result.rejections}


def diagnostic_rows(result: EpochResult) -> list[tuple[int, str, str | None]]:
    return [(diagnostic.t, str(diagnostic.code), diagnostic.action_id) for diagnostic in result.diagnostics]
