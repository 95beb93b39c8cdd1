"""Follow-ups of definitions are bounded by the minute in which they are submitted."""

import pytest

from pendula.actions import LiveWorld, run_document
from pendula.actions.model import Code

EPOCH = {"index": 0, "start_at": "2025-07-01T00:00:00", "end_at": "2025-07-01T00:05:00"}


def multiplying(count: int, limit: int) -> dict[str, object]:
    verb = {"base_duration_min": 1, "effort": "medium", "interruptible": True, "followups": [{"verb": "v"}] * count}
    options = {"slots": 5, "slot_minutes": 1, "limits": {"follow_ups": limit}}
    return {"epoch": EPOCH, "options": options, "action_defs": {"v": verb}}


@pytest.mark.req("ACT-PERF-3")
def test_a_verb_that_follows_itself_many_times_grows_no_faster_than_the_limit_allows() -> None:
    first = {"id": "a", "actor": "x", "verb": "v", "t": 0}

    [epoch] = run_document({**multiplying(3, 4), "actions_submitted": [first]}).epochs

    starts = [event.t for event in epoch.events if type(event).__name__ == "Start"]
    assert [starts.count(minute) for minute in range(5)] == [1, 3, 4, 4, 4]
    assert {rejection.code for rejection in epoch.rejections} == {Code.LIMIT_EXCEEDED}
    # Three minutes and the ends at the end of the epoch.
    assert len(epoch.rejections) == (9 - 4) + 3 * (12 - 4)


def test_a_restored_world_accepts_as_many_more() -> None:
    config = multiplying(3, 4)
    world = LiveWorld(config)
    world.submit({"id": "a", "actor": "x", "verb": "v"})
    world.advance_to(2)

    twin = LiveWorld.from_state(config, world.state())

    assert [str(event) for event in twin.advance_to(4)] == [str(event) for event in world.advance_to(4)]
    assert twin.state() == world.state()
