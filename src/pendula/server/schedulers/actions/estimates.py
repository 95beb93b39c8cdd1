"""When a wish would start in a served world, without doing it: carried out in a copy, which is thrown away.

A copy has nobody outside who submits or answers, so it comes to an end with what the world holds now.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from pendula.actions.engine import World
from pendula.actions.runs.what_if import what_if
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Reason
from pendula.server.routes.engine import LARGEST_N

WISH = "what-if"  # its id, where it has none


class Supposition(Struct, frozen=True, forbid_unknown_fields=True):
    """An instance that nobody submits; without a time it is for now. `until` is the last minute that is looked at."""

    action: Any
    until: Annotated[int, Meta(ge=0, le=LARGEST_N)] | None = None


class EstimateView(Struct, frozen=True):
    """When it would start and end, in minutes of the run and as times; else why it is not to start, or not accepted.

    `end` is without interrupts that nobody knows of yet.
    """

    action_id: str
    start: int | None
    end: int | None
    start_at: str | None
    end_at: str | None
    code: str | None
    message: str | None
    why: Reason | None


class Standing(Struct, frozen=True):
    """A world as it is, to be taken up again elsewhere."""

    kind: type[World]
    config: Json
    state: bytes


def standing(driver: Driver[Any, Any]) -> Standing:
    """Quick enough for the thread of the world; the rest is done beside it."""
    assert isinstance(driver.engine, World)
    return Standing(type(driver.engine), driver.journal.header.config, driver.engine.state())


def estimate(found: Standing, wish: Supposition) -> EstimateView:
    """Live on in a copy until the wish starts, is rejected, or nothing more is to come."""
    copy = found.kind.from_state(found.config, found.state)
    action = wish.action
    if isinstance(action, Mapping):
        when = {} if "t" in action or "submitted_at" in action else {"t": copy.now()}
        action = {"id": WISH} | dict(action) | when
    action_id = action["id"] if isinstance(action, dict) and isinstance(action["id"], str) else WISH
    told = what_if(copy, action, action_id, wish.until)
    rejected, shown = told.rejected, copy.current.setting.display
    return EstimateView(
        told.action_id,
        told.start,
        told.end,
        start_at=None if told.start is None else shown(told.start),
        end_at=None if told.end is None else shown(told.end),
        code=None if rejected is None else str(rejected.code),
        message=None if rejected is None else rejected.message,
        why=told.why,
    )
