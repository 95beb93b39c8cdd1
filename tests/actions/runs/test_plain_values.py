"""Documents of other YAML readers: their times are `datetime`."""

import pytest
import yaml

from pendula.actions import LiveWorld, run_document
from pendula.actions.messages import End, Start

REPAIR = """
action_defs:
  repair: {base_duration_min: 45, effort: high, interruptible: false, locks: [workshop]}
actions_submitted:
  - {id: A2, actor: Ronja, verb: repair, params: {part: valve}, submitted_at: 2025-07-01T08:10:00}
"""


@pytest.mark.req("ACT-TIME-1")
def test_a_document_of_another_yaml_reader_runs_like_a_file() -> None:
    document = yaml.safe_load(REPAIR)
    assert not isinstance(document["actions_submitted"][0]["submitted_at"], str)

    [epoch] = run_document(document).epochs

    assert [(type(event).__name__, event.at[11:16]) for event in epoch.events] == [("Start", "08:10"), ("End", "09:00")]


def test_a_live_world_accepts_a_datetime() -> None:
    document = yaml.safe_load(REPAIR)
    [repair] = document.pop("actions_submitted")
    epoch = yaml.safe_load("{index: 0, start_at: 2025-07-01T00:00:00, end_at: 2025-07-02T00:00:00}")
    world = LiveWorld({**document, "epoch": epoch})

    assert world.submit(repair) == ()
    assert [event.at[11:16] for event in world.advance_to(600) if isinstance(event, Start | End)] == ["08:10", "09:00"]
