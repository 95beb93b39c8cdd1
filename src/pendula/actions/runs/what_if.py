"""When would this start? A wish is carried out in a copy of the world, which is thrown away.

As far as it can be known now: nobody submits anything else, hooks and processes are not asked what follows.
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
    """When a wish would start and end, in minutes of the run; or why it would not.

    `end` is without interrupts that nobody knows of yet. Where `start` is None it was rejected, or it waits for
    something that is not to come by what is known now.
    """

    action_id: str
    start: int | None = None
    end: int | None = None
    rejected: Rejection | None = None
    why: Reason | None = None


class Modifying:
    """The outside of the copy: factors on durations are asked for, what follows is not."""

    def __init__(self, user_code: UserCode) -> None:
        self._user_code = user_code

    def ask(self, name: str, question: Json) -> Json:
        assert isinstance(question, Mapping)
        return self._user_code.factors(question) if name == "modifiers" else []


def what_if(copy: World, wish: Any, action_id: str, until: int | None) -> Estimate:
    """Live on in the copy until the wish starts, is rejected, or nothing more is to come (at most until `until`)."""
    found = _found(copy, copy.apply(Submit((wish,))).events, action_id)
    latest = copy.current.setting.latest if until is None else until
    while found is None:
        due = copy.next_due()
        if due is None or due > latest:
            return Estimate(action_id, why=copy.why({"action": action_id}))
        check()
        found = _found(copy, copy.apply(Advance(due)).events, action_id)
    return found


def _found(copy: World, events: tuple[Event, ...], action_id: str) -> Estimate | None:
    for event in events:
        # A wish without an id that can be read is rejected without one; a copy takes no other submission.
        if isinstance(event, Rejection) and event.action_id in (action_id, None):
            return Estimate(action_id, rejected=event)
        if isinstance(event, Start) and event.action_id == action_id:
            start = (event.epoch - copy.current.setting.first_epoch) * copy.current.setting.horizon + event.t
            return Estimate(action_id, start, start + event.meta["d"])
    return None
