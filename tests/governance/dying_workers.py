"""Workers on governed objects that die at random points, and the invariants that hold afterwards.

A verifier appends a line to a file each time it is entered; the line survives its process.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from pendula.governance.tables import tables_of
from pendula.jobs import JobRefused
from pendula.jobs.messages import plain
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import AuditListing, Listing, Reader, Store
from pendula.jobs.upkeep.verification import check
from pendula.kernel.canonical import decode
from tests.governance.plain_replies import governed
from tests.governance.verifier_rig import proof
from tests.jobs.crashing import SharedClock, scheduler

FINDINGS = ("inconclusive", "passed", "new_evidence", "suspicious", "conflict", "refuted")
EXPECTED = ("lease_lost", "lease_expired", "job_not_running", "not_begun")


class WorkerEnded(Exception):
    """Ends a worker in a thread."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def drop() -> None:
    raise WorkerEnded


class Worker:
    """Pulls, begins, verifies and finishes until nothing is due; it can die before each step."""

    def __init__(
        self,
        client: Scheduler,
        folder: Path,
        seed: str,
        end: Callable[[], None],
        risk: float = 0.1,
        findings: Sequence[str] = FINDINGS,
    ) -> None:
        self.client, self.folder, self.end, self.findings = client, folder, end, findings
        self.random, self.name, self.risk = Random(seed), f"w-{seed}", risk

    def run(self) -> None:
        while jobs := self.client.pull(worker_id=self.name, limit=1, lease_sec=60).jobs:
            try:
                self._work(plain(jobs[0]))
            except JobRefused as refused:
                if refused.code not in EXPECTED:
                    raise

    def _work(self, job: dict[str, Any]) -> None:
        self._moment()
        objects = governed(self.client)
        if job["action"] in ("decay", "archive"):
            objects.settle(job["job_id"], **proof(job))
            return
        if not objects.begin(job["job_id"], **proof(job))["entered"]:
            return
        entered(self.folder, f"{job['object_type']}:{job['object_id']} {job['action']}")
        self._moment()
        finding = self.random.choice(self.findings)
        self._moment()
        verdict: Any = {
            "finding": finding,
            "reason": "looked into",
            "evidence_refs": [f"ev_{self.random.randrange(9)}"],
        }
        objects.finish(job["job_id"], **verdict, **proof(job))

    def _moment(self) -> None:
        if self.random.random() < self.risk:
            self.end()


def entered(folder: Path, line: str) -> None:
    file = os.open(folder / "entered.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode() + b"\n")
    os.close(file)


def entries(folder: Path) -> Counter[str]:
    """The number of entries into the verifier, by object and action."""
    file = folder / "entered.txt"
    return Counter(file.read_text().splitlines()) if file.exists() else Counter()


def violations(folder: Path, clock: SharedClock) -> list[str]:
    """Every violated invariant, as a sentence."""
    with scheduler(folder, clock=clock) as client:
        return store_violations(client.calls.store)


def store_violations(store: Store) -> list[str]:
    return [*map(str, check(store)), *store.read(trail_violations), *store.read(_uncertain)]


def trail_violations(reader: Reader) -> list[str]:
    """The trail from its start: states form one chain, events have evidence, gates allowed them, one effect per job."""
    problems: list[str] = []
    places: dict[tuple[str, str], Any] = {}
    gates: dict[tuple[str, str], tuple[int, str]] = {}
    budgets: dict[tuple[str, str], int] = {}
    effects: Counter[str] = Counter()
    traces = {
        name: body
        for kind, place, _ in tables_of(reader).places()
        for one in tables_of(reader).page(kind, place, "", 1000)
        for name, body in tables_of(reader).traces(kind, one.object_id, 1000)
    }
    for row in reader.events(AuditListing(limit=100_000)):
        event: Any = decode(row.body.encode())
        after, about = event["after"], (row.object_type, row.object_id)
        if not event["evidence_refs"]:
            problems.append(f"{event['id']} names no evidence")
        if "gate" in after:
            gates[after["gate"], after["scope"]] = (after["version"], after["verdict"])
        if row.event_type == "investigation":
            budget_before, left = event["before"]["verify_budget_left"], after["verify_budget_left"]
            if (budget_before, left) != (budgets.get(about), budget_before - 1) or left < 0:
                problems.append(f"{event['id']} takes from {budget_before} to {left}, {about} had {budgets.get(about)}")
        if "verify_budget_left" in after:
            budgets[about] = after["verify_budget_left"]
        if row.event_type != "state_transition" or "status" not in after:
            continue
        before = None if event["before"] is None else _place(event["before"])
        if event["before"] is not None and before != places.get(about):
            problems.append(f"{event['id']} begins in {before}, {about} was in {places.get(about)}")
        places[about] = _place(after)
        if event["job_id"] is not None:
            effects[event["job_id"]] += 1
            if f"scheduler_job:{event['job_id']}" not in event["evidence_refs"]:
                problems.append(f"{event['id']} does not name its job")
        trace = event.get("decision_trace_id")
        if event.get("risk_tier") == "high" and trace is None:
            problems.append(f"{event['id']} is of high risk and has no trace")
        if trace is not None:
            problems += _stale(event["id"], traces[trace], gates)
    problems += [f"{job} had {n} effects" for job, n in effects.items() if n > 1]
    for (kind, name), place in places.items():
        one = tables_of(reader).governed(kind, name)
        if one is None or (one.status, one.epistemic) != place:
            problems.append(f"{kind} {name} is not in {place}, where the trail leaves it")
    return problems


def _place(verdict: dict[str, Any]) -> tuple[str, str | None]:
    return verdict["status"], verdict.get("epistemic_state")


def _stale(event: str, trace: Any, gates: dict[tuple[str, str], tuple[int, str]]) -> list[str]:
    """Violations of a decision: gates that differ from those of the trail at this point, or that forbid it."""
    now = {f"{name} {scope}": version for (name, scope), (version, _) in gates.items()}
    problems = []
    for name, version in trace["versions"].items():
        if now.get(name) != version:
            problems.append(f"{event} passed {name} at version {version}, which was at {now.get(name)}")
    shut = [word for word in trace["verdicts"].values() if word not in ("pass", "override")]
    if trace["outcome"] == "executed" and (shut or len(trace["verdicts"]) < 3):
        problems.append(f"{event} was executed though gates said {shut}")
    return problems


def _uncertain(reader: Reader) -> list[str]:
    """Every uncertain object has a date or a job."""
    problems = []
    for kind, place, _ in tables_of(reader).places():
        for one in tables_of(reader).page(kind, place, "", 1000):
            waiting = reader.jobs(Listing(object_type=kind, object_id=one.object_id, status="queued", limit=1))
            if "uncertain" in place and "archived" not in place and one.next_action_at is None and not waiting:
                problems.append(f"{kind} {one.object_id} is uncertain without a date or a job")
    return problems
