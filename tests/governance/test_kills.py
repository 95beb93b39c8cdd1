"""Workers die and gates change at any moment: budgets hold, and no change passes a closed gate."""

import os
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest

from pendula.governance.model import Risk
from tests.governance.dying_workers import FINDINGS, Worker, WorkerEnded, die, drop, entries, violations
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import GATES, WHOLE, VerifierRig
from tests.jobs.crashing import SharedClock, forked, scheduler
from tests.waiting import joined, status_of

UNSURE = {**WHOLE, "status": "needs_revalidate", "epistemic_state": "uncertain"}
SHUT = [
    ("persona_conflict_gate", "block"), ("risk_gate", "block"), ("risk_gate", "limit"), ("cognition_gate", "block"),
    ("cognition_gate", "degrade"), ("social_gate", "block"), ("social_gate", "defer"),
]  # fmt: skip
Round = Callable[[Path, SharedClock, str, float, Sequence[str]], None]


def _in_threads(folder: Path, clock: SharedClock, seed: str, risk: float, findings: Sequence[str]) -> None:
    with scheduler(folder, clock=clock) as client:
        threads = [
            Thread(target=_until_dead, args=(Worker(client, folder, f"{seed}-{n}", drop, risk, findings),))
            for n in range(8)
        ]
        for thread in threads:
            thread.start()
        joined(*threads)


def _until_dead(worker: Worker) -> None:
    try:
        worker.run()
    except WorkerEnded:
        return


def _in_processes(folder: Path, clock: SharedClock, seed: str, risk: float, findings: Sequence[str]) -> None:
    def work(n: int) -> None:
        with scheduler(folder, clock=clock) as client:
            Worker(client, folder, f"{seed}-{n}", die, risk, findings).run()

    children = [forked(lambda n=n: work(n)) for n in range(4)]  # type: ignore[misc]
    codes = [status_of(child) for child in children]
    assert all(code == 0 or os.WIFSIGNALED(code) for code in codes), codes


@pytest.mark.req("JOB-GATE-6", "JOB-GATE-12")
@pytest.mark.parametrize(
    ("members", "most"),
    [({"auto_verify_budget": 2}, 2), ({"auto_verify_budget": 9, "unknown_type": "ontic_unknowable"}, 1)],
    ids=["a budget of two", "the unknowable"],
)
@pytest.mark.parametrize("play", [_in_threads, pytest.param(_in_processes, marks=pytest.mark.long)])
@pytest.mark.parametrize("seed", ["a", "b", "c"])
def test_dying_workers_do_not_enter_the_verifier_beyond_the_budget(
    play: Round, members: dict[str, Any], most: int, seed: str, tmp_path: Path
) -> None:
    clock = SharedClock()
    with scheduler(tmp_path, clock=clock) as client:
        governed(client).as_user("mia").create("cognition", "cg", **UNSURE, **members)
        for n in range(10):
            job: dict[str, Any] = {
                "object_type": "cognition",
                "object_id": "cg",
                "action": "verify",
                "max_attempts": 100,
            }
            client.enqueue(**job, idempotency_key=f"{n}")
    for part in range(4):
        # Any other finding would change the object: supported, or no longer unknowable.
        play(tmp_path, clock, f"{seed}{part}", 0.3, ("inconclusive",))
        clock.pass_by(61)

    assert sum(entries(tmp_path).values()) <= most
    with scheduler(tmp_path, clock=clock) as client:
        # A worker that died between its pull and its verifier has used the unit that the pull took.
        assert governed(client).show("cognition", "cg")["object"]["verifications"] == most
    assert violations(tmp_path, clock) == []


@pytest.mark.req("JOB-GATE-2", "JOB-GATE-5", "JOB-GATE-6", "JOB-GATE-9", "JOB-AUD-1", "JOB-AUD-2", "JOB-POL-4")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_after_kills_and_gate_changes_the_trail_is_consistent(seed: int, tmp_path: Path) -> None:
    _lived_through(_in_threads, seed, 8, tmp_path)


@pytest.mark.long
@pytest.mark.req("JOB-GATE-2", "JOB-GATE-5", "JOB-GATE-6", "JOB-GATE-9", "JOB-AUD-1", "JOB-AUD-2", "JOB-POL-4")
@pytest.mark.parametrize("seed", range(10, 20))
def test_after_many_kills_and_gate_changes_the_trail_is_consistent(seed: int, tmp_path: Path) -> None:
    _lived_through(_in_processes, seed, 20, tmp_path)


def _lived_through(play: Round, seed: int, parts: int, folder: Path) -> None:
    clock, random = SharedClock(), Random(seed)
    with scheduler(folder, clock=clock) as client:
        user = governed(client).as_user("mia")
        for gate in GATES:
            user.set_gate(gate, "pass", "to begin with")
        for n, tier in product(range(3), (Risk.LOW, Risk.HIGH)):
            user.create("memory", f"m{n}{tier}", evidence_refs=["ev_1"], risk_tier=tier)
            user.create("experience", f"e{n}{tier}", evidence_refs=["ev_1"], source_refs=[f"memory:m{n}{tier}"])
            user.create("cognition", f"c{n}{tier}", **UNSURE, risk_tier=tier)
    for part in range(parts):
        turning = Thread(target=_turn, args=(folder, clock, Random(f"{seed} {part}")))
        if play is _in_threads:  # fork only while no other thread runs
            turning.start()
            play(folder, clock, f"{seed}-{part}", 0.05, FINDINGS)
            joined(turning)
        else:
            play(folder, clock, f"{seed}-{part}", 0.05, FINDINGS)
            _turn(folder, clock, Random(f"{seed} {part}"))
        clock.pass_by(random.choice((61, 3601, 86_400, 86_400, 3 * 86_400)))

    assert sum(entries(folder).values()) > 10
    assert violations(folder, clock) == []


def _turn(folder: Path, clock: SharedClock, random: Random) -> None:
    """Change gates while workers run."""
    with scheduler(folder, clock=clock) as client:
        user = governed(client).as_user("mia")
        for _ in range(6):
            gate, word = random.choice(SHUT)
            user.set_gate(gate, word, "turned")
            if random.random() < 0.9:
                user.set_gate(gate, "pass", "turned back")


@pytest.mark.req("JOB-GATE-1", "JOB-GATE-2", "JOB-GATE-4")
@pytest.mark.parametrize("moment", ["before the lease", "after the lease", "after begin"])
@pytest.mark.parametrize(("gate", "word"), SHUT)
def test_no_high_risk_promotion_passes_a_changed_gate(gate: str, word: str, moment: str, tmp_path: Path) -> None:
    rig = VerifierRig(tmp_path)
    rig.open_gates()
    rig.user.create("memory", "m", impact_tier="critical", evidence_refs=["ev_1"])
    rig.clock.pass_by(86_400)
    if moment == "before the lease":
        rig.user.set_gate(gate, word, "turned")
    job = rig.pulled()
    if moment == "after the lease":
        rig.user.set_gate(gate, word, "turned", scope="memory:m")
    ended = rig.begun(job)
    if moment == "after begin":
        rig.user.set_gate(gate, word, "turned")
    if ended["entered"]:
        ended = rig.finished(job, "passed")

    assert ended["object"]["status"] == "candidate"
    assert ended["executed"] in ("blocked", "limited", "abstained")
    rig.scheduler.close()
