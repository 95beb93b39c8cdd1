"""The state after any of the last events, computed backwards from now, equals the state at that time."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pendula.jobs import JobRefused
from pendula.jobs.calls import queries
from pendula.jobs.messages import Place, plain
from tests.governance.verifier_rig import DAY, WHOLE, VerifierRig, proof

# Fields that are not in the trail have their current value.
UNTOLD = ("updated_at", "delivery_count", "audit_event_id", "progress")
FINDINGS = ("passed", "suspicious", "forged", "inconclusive", "new_evidence", "refuted")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[VerifierRig]:
    rig = VerifierRig(tmp_path)
    yield rig
    rig.scheduler.close()


def _seen(moment: dict[str, Any]) -> dict[str, Any]:
    waiting = [{name: value for name, value in job.items() if name not in UNTOLD} for job in moment["waiting"]]
    return {"jobs": moment["jobs"], "places": moment["places"], "waiting": waiting, "at": moment["at"]}


def _steps(rig: VerifierRig, chance: Random) -> list[Callable[[], object]]:
    """Random calls, valid or not."""
    user, scheduler = rig.user, rig.scheduler
    name = f"o{chance.randrange(6)}"
    kind = ("memory", "cognition")[chance.randrange(2)]
    return [
        lambda: user.create("memory", name, risk_tier=chance.choice(["low", "high"]), evidence_refs=["ev_1"]),
        lambda: user.create("cognition", name, **WHOLE, unknown_type="multipath"),
        lambda: user.attach_evidence(kind, name, f"ev_{chance.randrange(9)}"),
        lambda: user.refill(kind, name, "more"),
        lambda: user.decide(kind, name, "verify", chance.choice(FINDINGS), reason="seen"),
        lambda: user.rollback_finished(kind, name),
        lambda: user.set_gate("risk_gate", chance.choice(["pass", "block"]), "a test"),
        lambda: scheduler.defer("memory", f"plain{chance.randrange(3)}", "archive", max_attempts=2),
        lambda: rig.clock.pass_by(chance.randrange(2 * DAY)),
        lambda: rig.verified(chance.choice(FINDINGS)),
        rig.pulled,
        lambda: _failed(rig),
        lambda: scheduler.cancel(_any_job(rig, chance), reason="a test"),
        lambda: scheduler.requeue(_any_job(rig, chance)),
    ]


def _failed(rig: VerifierRig) -> None:
    job = rig.pulled()
    rig.scheduler.fail(job["job_id"], error="down", **proof(job))


def _any_job(rig: VerifierRig, chance: Random) -> str:
    jobs = rig.scheduler.list().jobs
    return str(chance.choice(jobs).job_id) if jobs else "job_00000000"


@pytest.mark.parametrize("seed", range(8))
def test_every_moment_of_a_random_history_can_be_shown_again(rig: VerifierRig, seed: int) -> None:
    chance = Random(seed)
    rig.open_gates()
    seen = []
    for _ in range(60):
        with suppress(JobRefused, ValueError):  # rejected, or nothing was due
            chance.choice(_steps(rig, chance))()
        seen.append(_seen(plain(rig.scheduler.past())))

    for moment in seen:
        assert _seen(plain(rig.scheduler.past(at=moment["at"]))) == moment


def test_a_moment_shows_its_event_and_time(rig: VerifierRig) -> None:
    rig.user.create("memory", "m", reason="met today")
    rig.clock.pass_by(60)
    rig.user.attach_evidence("memory", "m", "ev_1")

    then = rig.scheduler.past(at="aud_000000000001")

    assert then.event is not None
    assert (then.event.reason, then.now) == ("met today", then.event.timestamp)
    assert then.places == [Place("memory", "candidate", 1)]
    assert (then.first, then.last) == ("aud_000000000001", rig.scheduler.past().at)


def test_an_empty_store_has_no_past_moment(rig: VerifierRig) -> None:
    now = rig.scheduler.past()

    assert (now.at, now.first, now.last, now.event, now.waiting) == (None, None, None, None, [])


@pytest.mark.parametrize("at", ["aud_000000000099", "aud_000000000000", "yesterday", "", 3])
def test_an_unknown_event_has_no_moment(rig: VerifierRig, at: object) -> None:
    rig.user.create("memory", "m")

    with pytest.raises(JobRefused) as refused:
        rig.scheduler.past(at=at)  # type: ignore[arg-type]

    assert refused.value.code == "invalid_field"


def test_history_is_limited_in_length(rig: VerifierRig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "EVENTS_BACK", 4)
    for number in range(6):
        rig.scheduler.defer("memory", f"m{number}", "decay")

    assert rig.scheduler.past().first == "aud_000000000002"
    assert rig.scheduler.past(at="aud_000000000002").jobs.queued == 2
    with pytest.raises(JobRefused):
        rig.scheduler.past(at="aud_000000000001")
