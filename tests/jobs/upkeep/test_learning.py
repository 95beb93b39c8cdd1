"""A learning stall raises one alert, after three whole periods without an exploratory verification."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pendula.jobs import Policy
from pendula.jobs.objects.endings import Limits
from pendula.jobs.objects.governed import DAY_US
from pendula.jobs.upkeep.learning import Learning
from tests.jobs.governance.living import Town

DOUBTED: dict[str, Any] = {"status": "needs_revalidate", "unknown_type": "out_of_scope", "evidence_refs": ["ev_1"]}
WEEK = 7


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    town = Town(tmp_path)
    town.clock.now -= town.clock.now % (WEEK * DAY_US)  # the first day of a period
    yield town
    town.scheduler.close()


def later(town: Town, weeks: int) -> None:
    town.clock.pass_by(weeks * WEEK * 86_400)


def alerts(town: Town) -> list[dict[str, Any]]:
    waiting = town.scheduler.calls.store.read(lambda look: look.alerts_waiting(0, 100))
    return [dict(body) for _, body in waiting if body["alert"] == "governance.learning_stalled"]


@pytest.mark.req("JOB-GATE-14")
def test_three_periods_without_exploration_raise_an_alert_and_two_do_not(town: Town) -> None:
    town.user.create("cognition", "cg", **DOUBTED)

    later(town, 3)
    assert (Learning(town.scheduler.calls).check(), alerts(town)) == (False, [])
    later(town, 1)
    assert Learning(town.scheduler.calls).check() is True

    [alert] = alerts(town)
    assert (alert["periods"], alert["severity"]) == (3, "warning")


@pytest.mark.req("JOB-GATE-14")
def test_each_stall_has_one_alert(town: Town) -> None:
    town.user.create("cognition", "cg", **{**DOUBTED, "auto_verify_budget": 9, "uncertainty_ttl": "P99W"})
    later(town, 5)
    for _ in range(3):
        Learning(town.scheduler.calls).check()
    assert len(alerts(town)) == 1

    town.verified("inconclusive")
    assert Learning(town.scheduler.calls).check() is False
    later(town, 4)
    Learning(town.scheduler.calls).check()

    assert [alert["periods"] for alert in alerts(town)] == [4, 3]


@pytest.mark.req("JOB-GATE-14")
@pytest.mark.parametrize(("risk", "stalled"), [("low", False), ("medium", True)])
def test_only_a_verification_in_explore_mode_counts_as_exploration(town: Town, risk: str, stalled: bool) -> None:
    members = {**DOUBTED, "risk_tier": risk, "auto_verify_budget": 9, "uncertainty_ttl": "P99W"}
    town.user.create("cognition", "cg", **members)
    later(town, 4)
    town.verified("inconclusive")

    assert Learning(town.scheduler.calls).check() is stalled


@pytest.mark.req("JOB-GATE-14")
def test_the_length_of_a_period_can_be_set(tmp_path: Path) -> None:
    town = Town(tmp_path, Policy(limits=Limits(learning_period_days=2)))
    town.clock.now -= town.clock.now % (2 * DAY_US)
    town.user.create("cognition", "cg", **DOUBTED)

    town.clock.pass_by(7 * 86_400)
    early = Learning(town.scheduler.calls).check()
    town.clock.pass_by(86_400)

    assert (early, Learning(town.scheduler.calls).check()) == (False, True)
    town.scheduler.close()


def test_a_store_without_governed_objects_does_not_stall(town: Town) -> None:
    later(town, 50)

    assert Learning(town.scheduler.calls).check() is False


def test_internal_counters_are_not_in_the_metrics(town: Town) -> None:
    town.user.create("cognition", "cg", **DOUBTED)
    town.verified("inconclusive", 1)

    kinds = {one["kind"] for one in town.scheduler.objects.figures()["counts"]}

    assert kinds == {"verification", "budget_granted", "outcome"}
