"""The cost of governance: the end of a governed job, with its transition, trail and follow-up, beside a plain ack."""

from contextlib import ExitStack, closing
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

from bench.jobs_loads import WORKER, Desk, granted
from bench.measuring.cpu_time import cpu_seconds
from bench.measuring.wall_time import Turns
from pendula.cli.benchmarks import Progress, Row, Target, compared
from pendula.governance.calls import Governance

AT_ONCE = 50
ROUNDS, QUICK_ROUNDS = 15, 5
AT_MOST = Target("<=", Decimal("2.5"))
Jobs = list[dict[str, Any]]


def rows(place: Path, quick: bool, progress: Progress, unfair: str | None) -> list[Row]:
    """One by one, each one flushed before the next; and the same in processor time."""
    progress("the ends of governed jobs")
    turns, cpu = Turns(), {"plain": 0.0, "governed": 0.0}
    with ExitStack() as stack:
        desk = stack.enter_context(closing(Desk(place / "governed.db")))
        governance = Governance(desk.calls)
        for number, _ in enumerate(turns.rounds(QUICK_ROUNDS if quick else ROUNDS)):
            plain, governed = _pulled_plain(desk), _begun(desk, governance, number)
            cpu["plain"] += cpu_seconds(partial(turns.take, "plain", partial(_acked, desk, plain)))
            cpu["governed"] += cpu_seconds(partial(turns.take, "governed", partial(_finished, governance, governed)))
    return [
        compared(
            "end of a governed job: transition, trail, follow-up",
            turns.seconds("governed") * 1_000_000 / AT_ONCE,
            turns.seconds("plain") * 1_000_000 / AT_ONCE,
            "us a job",
            against="a plain ack",
            ratio=turns.share("governed", "plain"),
            target=AT_MOST,
            unfair=unfair,
        ),
        compared(
            "the same in time of the processor",
            cpu["governed"] * 1_000_000 / AT_ONCE / (QUICK_ROUNDS if quick else ROUNDS),
            cpu["plain"] * 1_000_000 / AT_ONCE / (QUICK_ROUNDS if quick else ROUNDS),
            "us a job",
            against="a plain ack",
            target=AT_MOST,
        ),
    ]


def _pulled_plain(desk: Desk) -> Jobs:
    desk.enqueues(desk.bodies(AT_ONCE, due_in=0))
    return desk.pulls(AT_ONCE)


def _begun(desk: Desk, governance: Governance, number: int) -> Jobs:
    """New memories with a started verification: budget and gates are checked before the measured end."""
    for n in range(AT_ONCE):
        body = {"object_type": "memory", "object_id": f"m_{number}_{n}", "evidence_refs": ["ev_1"]}
        granted(governance.create(body))
        granted(desk.calls.enqueue({"object_type": "memory", "object_id": body["object_id"], "action": "verify"}))
    jobs = desk.pulls(AT_ONCE)
    for job in jobs:
        granted(governance.begin(job["job_id"], _proof(job)))
    return jobs


def _acked(desk: Desk, jobs: Jobs) -> None:
    for job in jobs:
        granted(desk.calls.ack(job["job_id"], {"result": "succeeded", **_proof(job)}))


def _finished(governance: Governance, jobs: Jobs) -> None:
    for job in jobs:
        verdict = {"finding": "passed", "reason": "the evidence holds", "evidence_refs": ["ev_2"], **_proof(job)}
        assert granted(governance.finish(job["job_id"], verdict))["outcome"] == "transitioned"


def _proof(job: dict[str, Any]) -> dict[str, str]:
    return {"worker_id": WORKER, "lease_token": job["lease_token"]}
