"""Why a truck stands, in one sentence."""

import re
from pathlib import Path

import pytest

from pendula.fleet import explain
from pendula.fleet.compiler.samples import FL_STD, reference_fleet
from pendula.fleet.contracts import HoldReason, Phase
from pendula.fleet.explain import facts, lasting, sentence
from pendula.fleet.scenarios import Run, shipped
from pendula.fleet.tick import OrderKind
from pendula.fleet.tick.reasons import GOING_TO_PARK, IDLE_NO_TASK, WAITS, Reason
from pendula.fleet.tick.records import Stop
from tests.fleet.sites import scene
from tests.fleet.tick.troubled import Hall
from tests.fleet.tick.yard import Yard

ROOT = Path(__file__).parents[2]


@pytest.mark.req("FLT-OBS-8")
def test_every_reason_has_a_sentence_and_a_line_in_the_pages_that_explain_it() -> None:
    codes = {*WAITS, *Stop, IDLE_NO_TASK, GOING_TO_PARK, "NO_ROUTE"}
    pages = [(ROOT / f"docs/how-to/{name}.md").read_text() for name in ("read-why-a-truck-waits", "drill-a-failure")]
    cells = [cell for page in pages for cell in re.findall(r"^\|(.*?)\|", page, re.MULTILINE)]
    listed = {code for cell in cells for code in re.findall(r"`(\w+)`", cell)}

    assert codes - explain._SENTENCES.keys() == set()
    assert codes - listed == set()


@pytest.mark.req("FLT-OBS-7", "FLT-FAIL-14")
def test_a_truck_without_any_report_has_not_reported_yet() -> None:
    yard = Yard(scene("reference-hall"), reference_fleet(3), [FL_STD])
    yard.drivers["R1"].mute = True
    yard.run(30)

    assert sentence(yard.traffic.why("R1")) == "R1 stops: it has not reported yet."


@pytest.mark.req("FLT-OBS-7", "FLT-FAIL-14")
def test_a_truck_without_a_report_since_a_restart_is_named_as_such() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.order(OrderKind.RESTARTED, None)

    assert sentence(hall.traffic.why("R1")) == "R1 stops: it has not reported since the restart."


@pytest.mark.req("FLT-OBS-7")
def test_a_truck_that_has_been_silent_has_an_old_report() -> None:
    hall = Hall()
    hall.first.mute = True
    hall.run(8)

    assert sentence(hall.traffic.why("R1")) == "R1 stops: its last report is too old."


@pytest.mark.req("FLT-OBS-7")
def test_a_truck_stopped_for_its_own_reason_has_no_blocker() -> None:
    hall = Hall()
    while all(record.waiting is None or record.waiting.by is None for record in hall.traffic.records):
        hall.step()
        assert hall.now < 300_000
    waits = next(
        record for record in hall.traffic.records if record.waiting is not None and record.waiting.by is not None
    )
    before = hall.traffic.why(waits.robot_id)
    hall.order(OrderKind.PAUSE, waits.robot_id)
    why = hall.traffic.why(waits.robot_id)

    assert before.blocker is not None
    assert waits.robot_id != before.blocker
    assert hall.record(waits.number).waiting is not None
    assert (why.code, why.blocker, why.resource, why.chain) == ("STOP_OPERATOR", None, None, (waits.robot_id,))


@pytest.mark.req("FLT-OBS-7")
@pytest.mark.parametrize(
    ("requested", "text"),
    [
        ("EDGE_GROUP:L 1<->L 2", "R2 waits for the lane L 1<->L 2: R1 holds the node L 3."),
        ("NODE:L 1", "R2 waits for the node L 1: R1 holds the node L 3."),
        ("CS:SPUR-A", "R2 waits for the section SPUR-A: R1 holds the node L 3."),
        (None, "R2 waits for its route: R1 holds the node L 3."),
    ],
)
def test_a_sentence_names_the_requested_resource_and_what_the_blocker_holds(requested: str | None, text: str) -> None:
    reason = Reason(
        "R2", HoldReason.TRAFFIC_HOLD, "WAIT_NODE", "R1", "NODE:L 3", 1, 0, ("R2", "R1"), (), requested=requested
    )

    assert sentence(reason) == text
    assert (facts(reason)["blockerResourceId"], facts(reason)["requestedResourceId"]) == ("NODE:L 3", requested)


@pytest.mark.req("FLT-OBS-7")
def test_a_truck_that_still_stands_after_its_overrun_was_cleared_names_what_it_needs() -> None:
    hall = Hall()
    record = hall.record()
    record.stop_code = record.latched = Stop.OVERRUN
    before = sentence(hall.traffic.why("R1"))
    record.latched = None
    after = sentence(hall.traffic.why("R1"))

    assert before == "R1 stops: it passed its stop line."
    assert after == (
        "R1 stops: it passed its stop line; its fault is cleared, and it continues when a route from its position "
        "leaves the others theirs."
    )


@pytest.mark.req("FLT-OBS-7")
@pytest.mark.parametrize(
    ("phase", "text"),
    [(Phase.LOADING, "R1 is loading."), (Phase.UNLOADING, "R1 is unloading."), (Phase.TO_DROP, "R1 is on its way.")],
)
def test_a_truck_without_a_blocker_is_working_or_driving(phase: Phase, text: str) -> None:
    reason = Reason("R1", HoldReason.NONE, None, None, None, None, 0, ("R1",), ())

    assert sentence(reason, phase=phase) == text


@pytest.mark.req("FLT-OBS-7")
def test_why_says_that_a_truck_is_unloading() -> None:
    run = Run(shipped("spur"))
    while not any(driver.phase is Phase.UNLOADING for driver in run.dispatch.drivers):
        run.step()
    busy = next(driver.robot_id for driver in run.dispatch.drivers if driver.phase is Phase.UNLOADING)

    assert run.engine.why({"robot": busy}).sentence == f"{busy} is unloading."


def test_a_wait_is_shown_in_its_two_largest_units() -> None:
    shown = [lasting(ms) for ms in (0, 999, 45_900, 60_000, 806_000, 3_600_000, 3_660_000, 8_299_000)]

    assert shown == ["0 s", "0 s", "45 s", "1 min", "13 min 26 s", "1 h", "1 h 1 min", "2 h 18 min"]
