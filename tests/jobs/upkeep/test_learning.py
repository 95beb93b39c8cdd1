"""A learning stall raises one alert, after three whole periods without an exploratory verification."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pendula.governance import Rules
from pendula.governance.decisions import Limits
from pendula.governance.model import DAY_US
from pendula.jobs import Policy
from pendula.jobs.upkeep.background_services import Learning
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import VerifierRig

DOUBTED: dict[str, Any] = {"status": "needs_revalidate", "unknown_type": "out_of_scope", "evidence_refs": ["ev_1"]}
WEEK = 7


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[VerifierRig]:
    rig = VerifierRig(tmp_path)
    rig.clock.now -= rig.clock.now % (WEEK * DAY_US)  # the first day of a period
    yield rig
    rig.scheduler.close()


def later(rig: VerifierRig, weeks: int) -> None:
    rig.clock.pass_by(weeks * WEEK * 86_400)


def alerts(rig: VerifierRig) -> list[dict[str, Any]]:
    waiting = rig.scheduler.calls.store.read(lambda look: look.alerts_waiting(0, 100))
    return [dict(body) for _, body in waiting if body["alert"] == "governance.learning_stalled"]


@pytest.mark.req("JOB-GATE-14")
def test_three_periods_without_exploration_raise_an_alert_and_two_do_not(rig: VerifierRig) -> None:
    rig.user.create("cognition", "cg", **DOUBTED)

    later(rig, 3)
    assert (Learning(rig.scheduler.calls).check(), alerts(rig)) == (False, [])
    later(rig, 1)
    assert Learning(rig.scheduler.calls).check() is True

    [alert] = alerts(rig)
    assert (alert["periods"], alert["severity"]) == (3, "warning")


@pytest.mark.req("JOB-GATE-14")
def test_each_stall_has_one_alert(rig: VerifierRig) -> None:
    rig.user.create("cognition", "cg", **{**DOUBTED, "auto_verify_budget": 9, "uncertainty_ttl": "P99W"})
    later(rig, 5)
    for _ in range(3):
        Learning(rig.scheduler.calls).check()
    assert len(alerts(rig)) == 1

    rig.verified("inconclusive")
    assert Learning(rig.scheduler.calls).check() is False
    later(rig, 4)
    Learning(rig.scheduler.calls).check()

    assert [alert["periods"] for alert in alerts(rig)] == [4, 3]


@pytest.mark.req("JOB-GATE-14")
@pytest.mark.parametrize(("risk", "stalled"), [("low", False), ("medium", True)])
def test_only_a_verification_in_explore_mode_counts_as_exploration(rig: VerifierRig, risk: str, stalled: bool) -> None:
    members = {**DOUBTED, "risk_tier": risk, "auto_verify_budget": 9, "uncertainty_ttl": "P99W"}
    rig.user.create("cognition", "cg", **members)
    later(rig, 4)
    rig.verified("inconclusive")

    assert Learning(rig.scheduler.calls).check() is stalled


@pytest.mark.req("JOB-GATE-14")
def test_the_length_of_a_period_can_be_set(tmp_path: Path) -> None:
    rig = VerifierRig(tmp_path, Policy(governance=Rules(limits=Limits(learning_period_days=2))))
    rig.clock.now -= rig.clock.now % (2 * DAY_US)
    rig.user.create("cognition", "cg", **DOUBTED)

    rig.clock.pass_by(7 * 86_400)
    early = Learning(rig.scheduler.calls).check()
    rig.clock.pass_by(86_400)

    assert (early, Learning(rig.scheduler.calls).check()) == (False, True)
    rig.scheduler.close()


def test_a_store_without_governed_objects_does_not_stall(rig: VerifierRig) -> None:
    later(rig, 50)

    assert Learning(rig.scheduler.calls).check() is False


def test_internal_counters_are_not_in_the_metrics(rig: VerifierRig) -> None:
    rig.user.create("cognition", "cg", **DOUBTED)
    rig.verified("inconclusive", 1)

    kinds = {one["kind"] for one in governed(rig.scheduler).figures()["counts"]}

    assert kinds == {"verification", "budget_granted", "outcome"}
