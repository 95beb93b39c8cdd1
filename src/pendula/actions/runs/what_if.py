"""Estimates when a submission would start, in a copy of the world that is discarded.

The estimate assumes no further submissions; hooks and processes are not asked for follow-ups.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from pendula.actions.engine import World
from pendula.actions.events import Advance, Event, Rejection, Start, Submit
from pendula.actions.runs.user_code import UserCode
from pendula.kernel.cancellation import check
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason


class Estimate(Struct, frozen=True):
    """When a submission would start and end, in minutes of the run; or why it would not.

    `end` ignores interrupts that are not requested yet. If `start` is None, the submission was rejected or waits for
    something that is not scheduled.
    """

    action_id: str
    start: int | None = None
    end: int | None = None
    rejected: Rejection | None = None
    why: Reason | None = None


class ModifiersOnly:
    """The outside of the copy: asks for modifiers, not for follow-ups."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code

    def ask(self, name: str, question: Json) -> Json:
        assert isinstance(question, Mapping)
        return self._user_code.factors(question) if name == "modifiers" else []


def what_if(copy: World, submission: Any, action_id: str, until: int | None) -> Estimate:
    """Advance the copy until the submission starts, is rejected, or nothing is pending; at most to minute `until`."""
    estimate = _estimate(copy, copy.apply(Submit((submission,))).events, action_id)
    latest = copy.current.setting.latest if until is None else until
    while estimate is None:
        due = copy.next_due()
        if due is None or due > latest:
            return Estimate(action_id, why=copy.why({"action": action_id}))
        check()
        estimate = _estimate(copy, copy.apply(Advance(due)).events, action_id)
    return estimate


def _estimate(copy: World, events: tuple[Event, ...], action_id: str) -> Estimate | None:
    for event in events:
        # A submission without a readable id is rejected without one; the copy has no other submission.
        if isinstance(event, Rejection) and event.action_id in (action_id, None):
            return Estimate(action_id, rejected=event)
        if isinstance(event, Start) and event.action_id == action_id:
            start = (event.epoch - copy.current.setting.first_epoch) * copy.current.setting.horizon + event.t
            return Estimate(action_id, start, start + event.meta["d"])
    return None
