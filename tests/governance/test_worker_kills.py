"""Workers on governed objects, killed, frozen and interrupted at random moments while gates change and people decide.

Days pass in seconds, so that leases of frozen workers expire. Each process is forked from one that has no store open; a
verifier appends a line to a file each time it is entered.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from time import sleep
from typing import Any

import pytest

from pendula.governance.model import Risk
from pendula.jobs import JobRefused, Policy, Scheduler, Verdict, Worker
from pendula.jobs.model import Durability
from pendula.jobs.reasons import Unknown
from pendula.jobs.store.protocol import AuditListing, Reader
from pendula.jobs.worker.handlers import Context, Handlers, verifier
from pendula.kernel.wallclock import steady_us
from tests.governance.dying_workers import entered, entries, store_violations
from tests.governance.plain_replies import governed
from tests.governance.test_kills import SHUT
from tests.governance.verifier_rig import GATES, WHOLE
from tests.jobs.crashing import forked, scheduler
from tests.jobs.stores import NOON
from tests.waiting import status_of

SPEED, LEASE_SEC = 20_000, 43_200  # a day is four seconds long, and a lease two
POLICY = Policy(durability=Durability.NORMAL, default_max_attempts=50)
KINDS, LOOKS = ("memory", "experience", "cognition"), ("verify", "revalidate", "reinstate-check")
FINDINGS = ("inconclusive", "inconclusive", "passed", "new_evidence", "suspicious", "conflict", "refuted")
UNKNOWN = tuple(Unknown)
DECISIONS = (("use", "used"), ("verify", "passed"), ("archive", "expired"), ("invalidate", "source_forged"))
OBJECTS, WORKERS, BLOWS = 15, 3, 40


class Fast:
    """A clock that all processes share, started with the test."""

    def __init__(self) -> None:
        self._began = steady_us()

    def __call__(self) -> int:
        return NOON + (steady_us() - self._began) * SPEED


def _made(client: Scheduler) -> None:
    user = governed(client).as_user("mia")
    for gate in GATES:
        user.set_gate(gate, "pass", "to begin with")
    for n in range(OBJECTS):
        tier = (Risk.LOW, Risk.HIGH)[n % 2]
        soon: Any = {"review_interval": "P2D"}
        user.create("memory", f"{n}", evidence_refs=["ev_1"], risk_tier=tier, half_life="P2D")
        user.create("experience", f"{n}", evidence_refs=["ev_1"], source_refs=[f"memory:{n}"], **soon)
        user.create("cognition", f"{n}", **{**WHOLE, **soon, "unknown_type": UNKNOWN[n % 3]}, risk_tier=tier)


def _handlers(folder: Path, random: Random) -> Handlers:
    def verify(context: Context) -> Verdict:
        paid = "paid" if context.object["verify_budget_left"] < context.object["auto_verify_budget"] else "free"
        about = f"{context.job.object_type}:{context.job.object_id}"
        entered(folder, f"{about} {context.job.job_id}:{context.fence} {paid}")
        sleep(random.random() / 20)
        if random.random() < 0.1:
            raise SystemExit(1)
        return Verdict(random.choice(FINDINGS), "looked into", (f"ev_{random.randrange(9)}",))

    for kind in KINDS:
        for action in LOOKS:
            verify = verifier(kind, action)(verify)
    return Handlers([verify])


def _work(folder: Path, clock: Fast, seed: str) -> None:
    with scheduler(folder, POLICY, clock) as client:
        Worker(
            client,
            _handlers(folder, Random(seed)),
            worker_id=f"w-{seed}",
            govern=True,
            concurrency=3,
            batch=2,
            lease_sec=LEASE_SEC,
            interval_sec=0.1,
            grace_sec=1,
            ticks=clock,
        ).run(signals=True)


def _meddle(folder: Path, clock: Fast, seed: str) -> None:
    """Change a gate and change it back; decide, add evidence or report a rollback as finished."""
    random = Random(seed)
    with scheduler(folder, POLICY, clock) as client:
        user, (gate, word) = governed(client).as_user("mia"), random.choice(SHUT)
        about = random.choice(KINDS), f"{random.randrange(OBJECTS)}"
        user.set_gate(gate, word, "turned")
        sleep(random.random() / 5)
        user.set_gate(gate, "pass", "turned back")
        calls: list[Callable[[], object]] = [
            lambda: user.attach_evidence(*about, f"ev_{seed}", unknown_type=random.choice(UNKNOWN)),
            lambda: user.refill(*about, "once more"),
            lambda: user.decide(*about, *random.choice(DECISIONS), reason="seen", evidence_refs=["ev_hand"]),
            lambda: user.rollback_finished(*about),
        ]
        try:
            random.choice(calls)()
        except JobRefused:
            return


def _struck(child: int, random: Random) -> bool:
    """Whether the child has exited; a frozen one is continued."""
    match random.choices(("kill", "freeze", "interrupt", "twice"), (5, 2, 2, 1))[0]:
        case "kill":
            os.kill(child, signal.SIGKILL)
        case "freeze":
            os.kill(child, signal.SIGSTOP)
            sleep(random.random() * 3)
            os.kill(child, signal.SIGCONT)
            return False
        case "interrupt":
            os.kill(child, signal.SIGINT)
        case _:
            os.kill(child, signal.SIGTERM)
            sleep(random.random() / 10)
            os.kill(child, signal.SIGTERM)
    status_of(child)
    return True


@pytest.mark.long
@pytest.mark.req("JOB-GATE-2", "JOB-GATE-5", "JOB-GATE-6", "JOB-GATE-9", "JOB-AUD-1", "JOB-WRK-6", "JOB-WRK-13")
@pytest.mark.parametrize("seed", range(4))
def test_the_trail_is_consistent_and_every_verifier_entry_is_in_the_budget(seed: int, tmp_path: Path) -> None:
    clock, random = Fast(), Random(seed)
    with scheduler(tmp_path, POLICY, clock) as client:
        _made(client)
    children = [forked(lambda n=n: _work(tmp_path, clock, f"{seed}-{n}")) for n in range(WORKERS)]  # type: ignore[misc]
    for blow in range(BLOWS):
        sleep(random.random() / 2)
        meddler = forked(lambda b=blow: _meddle(tmp_path, clock, f"{seed}-{b}"))  # type: ignore[misc]
        at = random.randrange(WORKERS)
        if _struck(children[at], random):
            children[at] = forked(lambda b=blow: _work(tmp_path, clock, f"{seed}-after-{b}"))  # type: ignore[misc]
        if random.random() < 0.2:
            os.kill(meddler, signal.SIGKILL)
        status_of(meddler)
    for child in children:
        os.kill(child, signal.SIGKILL)
        status_of(child)

    lines = [line.split(" ") for line in entries(tmp_path).elements()]
    assert len(lines) > 50
    deliveries = Counter(delivery for _, delivery, _ in lines)
    assert [delivery for delivery, count in deliveries.items() if count > 1] == []
    with scheduler(tmp_path, POLICY, clock) as client:
        paid = client.calls.store.read(_paid)
        assert {about for about, _, word in lines if word == "paid" and not paid[about]} == set()
        assert store_violations(client.calls.store) == []


def _paid(look: Reader) -> Counter[str]:
    """Units of budget taken, by object."""
    events = look.events(AuditListing(limit=1_000_000, event_type="investigation"))
    return Counter(f"{row.object_type}:{row.object_id}" for row in events)
