"""A store with governed objects, a clock that the test moves, and the steps of a verifier."""

from pathlib import Path
from typing import Any

from pendula.governance.applying import give_up
from pendula.jobs import Policy, Scheduler
from pendula.jobs.messages import plain
from pendula.jobs.model import SYSTEM
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction import LOCAL
from pendula.kernel.time import format_utc, parse_utc
from tests.governance.plain_replies import governed
from tests.jobs.stores import Clock, opened

DAY = 86_400
PRIORITIES = ("high", "medium", "low")
GATES = ("persona_conflict_gate", "risk_gate", "cognition_gate")
WHOLE: dict[str, Any] = {
    "falsify_if": "a counter-example",
    "review_interval": "P7D",
    "expires_at": "2036-01-01T00:00:00Z",
    "evidence_refs": ["ev_1"],
}


class VerifierRig:
    """One scheduler and its verifier, with findings given by the test."""

    def __init__(self, folder: Path, policy: Policy | None = None) -> None:
        self.scheduler, self.clock = opened(folder, policy)
        self.entered = 0

    @property
    def user(self) -> Any:
        return governed(self.scheduler).as_user("mia")

    def open_gates(self, **verdicts: str) -> None:
        for gate in GATES:
            self.user.set_gate(gate, verdicts.get(gate, "pass"), "for a test")

    def pulled(self, days: int = 0) -> dict[str, Any]:
        """The next job after `days`; if the pull withheld it, the job as it is afterwards."""
        self.clock.pass_by(days * DAY)
        now = format_utc(self.clock())
        due = [job for job in self.scheduler.list(status="queued", limit=1000).jobs if job.run_at <= now]
        jobs = self.scheduler.pull(worker_id="w", limit=1, lease_sec=60).jobs
        if jobs:
            return plain(jobs[0])
        first = min(due, key=lambda job: (parse_utc(job.run_at), PRIORITIES.index(job.priority), job.job_id))
        return plain(self.scheduler.show(first.job_id).job)

    def end_without_replacement(self, job_id: str) -> None:
        """End a job without a replacement, which no call does."""

        def work(tx: Writer, now: int) -> None:
            job = tx.job(job_id)
            assert job is not None
            give_up(tx, job, "lost", SYSTEM, now)

        self.scheduler.calls.change(work, LOCAL)

    def begun(self, job: dict[str, Any]) -> dict[str, Any]:
        """The answer of `begin`, or the same for a job that its pull has already ended."""
        if job["lease_token"] is None:
            return self.withheld(job)
        answer: dict[str, Any] = governed(self.scheduler).begin(job["job_id"], **proof(job))
        self.entered += answer["entered"]
        return answer

    def withheld(self, job: dict[str, Any]) -> dict[str, Any]:
        """The end of a withheld job, in the form of an answer of `begin`."""
        shown = governed(self.scheduler).show(job["object_type"], job["object_id"])
        traces = [entry for entry in shown["decision_traces"] if entry["job_id"] == job["job_id"]]
        outcome = job["outcome"] or (job["last_error"] or "").partition(":")[0]
        answer_facts = {"outcome": outcome, "executed": traces[0]["outcome"] if traces else None}
        alerts = [entry for entry in self.scheduler.alerts().alerts if entry["alert"] == "governance.escalation"]
        answer_facts |= {"escalated": any(entry["job_id"] == job["job_id"] for entry in alerts)}
        queued = [
            entry.job_id
            for entry in self.scheduler.list(object_type=job["object_type"], object_id=job["object_id"]).jobs
            if entry.status == "queued"
        ]
        answer_facts |= {"followup_job_id": queued[0] if queued else None}
        trace = traces[0]["decision_trace_id"] if traces else None
        return {"entered": False, **answer_facts, "job": job, "object": shown["object"], "decision_trace_id": trace}

    def finished(self, job: dict[str, Any], finding: str, **members: Any) -> dict[str, Any]:
        answer_facts = {"reason": "looked into", "evidence_refs": ["ev_2"], **members}
        answer: dict[str, Any] = governed(self.scheduler).finish(
            job["job_id"], finding=finding, **answer_facts, **proof(job)
        )
        return answer

    def verified(self, finding: str, days: int = 0, **members: Any) -> dict[str, Any]:
        """A whole round: pull, begin, and finish unless it has ended."""
        job = self.pulled(days)
        answer = self.begun(job)
        return self.finished(job, finding, **members) if answer["entered"] else answer

    def events(self, object_type: str, object_id: str) -> list[dict[str, Any]]:
        found = self.scheduler.audit(object_type=object_type, object_id=object_id)
        return [plain(event) for event in found.events]


def proof(job: dict[str, Any]) -> dict[str, Any]:
    return {"worker_id": job["worker_id"], "lease_token": job["lease_token"]}


__all__ = ["DAY", "GATES", "WHOLE", "Clock", "Scheduler", "VerifierRig", "proof"]
