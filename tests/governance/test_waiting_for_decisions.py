"""Objects that wait for a person are counted completely, and found without reading other objects."""

import sqlite3
from contextlib import closing
from pathlib import Path

from pendula.governance import tables
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import WHOLE, VerifierRig, proof


def test_every_object_that_needs_a_persons_decision_is_counted(tmp_path: Path) -> None:
    rig = VerifierRig(tmp_path)
    # Text in a field does not count as a member, even if it looks like one.
    trap = '"decision_mode":"escalate"'
    for number in range(230):
        risk = "high" if number % 2 else "low"
        rig.user.create("cognition", f"c{number:03d}{trap}", **WHOLE, unknown_type="multipath", risk_tier=risk)
    rig.user.create("cognition", "known", **{**WHOLE, "falsify_if": f"{trap}, {{'closed':1}}"}, risk_tier="low")
    shown = [rig.user.show("cognition", f"c{number:03d}{trap}")["object"] for number in range(230)]
    waiting = [one for one in shown if one["decision_mode"] == "escalate" and one["closed"] is None]

    figures = rig.user.figures()["for_a_person"]

    assert 0 < len(waiting) < 230
    assert figures == {"count": len(waiting), "first": waiting[:3]}
    rig.scheduler.close()


def test_a_decided_object_no_longer_waits(tmp_path: Path) -> None:
    rig = VerifierRig(tmp_path)
    rig.open_gates()
    rig.user.create("cognition", "c", **WHOLE, unknown_type="multipath", risk_tier="high")
    before = rig.user.figures()["for_a_person"]["count"]
    rig.user.decide("cognition", "c", "verify", "passed", reason="seen", evidence_refs=["ev_2"])

    assert (before, rig.user.figures()["for_a_person"]) == (1, {"count": 0, "first": []})
    rig.scheduler.close()


def test_an_object_in_a_final_state_waits_for_no_decision(tmp_path: Path) -> None:
    rig = VerifierRig(tmp_path)
    rig.open_gates()
    soon = {**WHOLE, "expires_at": "2026-02-22T00:00:00Z"}
    rig.user.create("cognition", "c", **soon, status="stale", unknown_type="multipath", risk_tier="high")
    before = rig.user.figures()["for_a_person"]["count"]
    job = rig.pulled(20)
    governed(rig.scheduler).settle(job["job_id"], **proof(job))

    archived = rig.user.show("cognition", "c")["object"]
    assert (archived["status"], archived["decision_mode"], archived["next_action"]) == ("archived", "escalate", None)
    assert (before, rig.user.figures()["for_a_person"]) == (1, {"count": 0, "first": []})
    rig.scheduler.close()


def test_waiting_objects_are_found_by_an_index(tmp_path: Path) -> None:
    VerifierRig(tmp_path).scheduler.close()
    with closing(sqlite3.connect(tmp_path / "jobs.db")) as connection:
        query = f"EXPLAIN QUERY PLAN SELECT count(*) FROM governed WHERE {tables._FOR_A_PERSON}"
        steps = [row[3] for row in connection.execute(query)]

    assert [step for step in steps if "governed_for_a_person" in step] == steps
