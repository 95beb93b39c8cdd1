"""Estimates when a submission would start in a served world, in a copy that is discarded.

The copy receives no further submissions or answers.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from pendula.actions.engine import World
from pendula.actions.runs.live import what_if
from pendula.kernel.canonical import Json
from pendula.kernel.driver import Driver
from pendula.kernel.engine import Reason
from pendula.server.api.engines import LARGEST_N

DEFAULT_ID = "what-if"  # for a submission without an id


class Supposition(Struct, frozen=True, forbid_unknown_fields=True):
    """An instance to estimate; its time defaults to now. `until` is the last minute to look at."""

    action: Any
    until: Annotated[int, Meta(ge=0, le=LARGEST_N)] | None = None


class EstimateView(Struct, frozen=True):
    """When it would start and end, in minutes of the run and as times; else why it does not start or is rejected.

    `end` ignores interrupts that are not requested yet.
    """

    action_id: str
    start: int | None
    end: int | None
    start_at: str | None
    end_at: str | None
    code: str | None
    message: str | None
    why: Reason | None


class SavedWorldState(Struct, frozen=True):
    """The class, configuration and state of a world, to restore it in another thread."""

    kind: type[World]
    config: Json
    state: bytes


def saved_state(driver: Driver[Any, Any]) -> SavedWorldState:
    """Save the world, which is quick enough for its thread; the estimate runs in another."""
    assert isinstance(driver.engine, World)
    return SavedWorldState(type(driver.engine), driver.journal.header.config, driver.engine.state())


def estimate(saved: SavedWorldState, supposition: Supposition) -> EstimateView:
    """Advance a copy until the submission starts, is rejected, or nothing is pending."""
    copy = saved.kind.from_state(saved.config, saved.state)
    action = supposition.action
    if isinstance(action, Mapping):
        when = {} if "t" in action or "submitted_at" in action else {"t": copy.now()}
        action = {"id": DEFAULT_ID} | dict(action) | when
    action_id = action["id"] if isinstance(action, dict) and isinstance(action["id"], str) else DEFAULT_ID
    estimated = what_if(copy, action, action_id, supposition.until)
    rejected, shown = estimated.rejected, copy.current.setting.display
    return EstimateView(
        estimated.action_id,
        estimated.start,
        estimated.end,
        start_at=None if estimated.start is None else shown(estimated.start),
        end_at=None if estimated.end is None else shown(estimated.end),
        code=None if rejected is None else str(rejected.code),
        message=None if rejected is None else rejected.message,
        why=estimated.why,
    )
