"""A store with governed objects in it, a clock that is moved by hand, and the work of a verifier."""

from pathlib import Path
from typing import Any

from pendula.jobs import Policy, Scheduler
from tests.jobs.stores import Clock, opened

DAY = 86_400
GATES = ("persona_conflict_gate", "risk_gate", "cognition_gate")
WHOLE: dict[str, Any] = {
    "falsify_if": "a counter-example",
    "review_interval": "P7D",
    "expires_at": "2036-01-01T00:00:00Z",
    "evidence_refs": ["ev_1"],
}


class Town:
    """One scheduler and its verifier, whose findings are given in advance."""

    def __init__(self, folder: Path, policy: Policy | None = None) -> None:
        self.scheduler, self.clock = opened(folder, policy)
        self.entered = 0

    @property
    def user(self) -> Any:
        return self.scheduler.objects.as_user("mia")

    def open_gates(self, **verdicts: str) -> None:
        for gate in GATES:
            self.user.set_gate(gate, verdicts.get(gate, "pass"), "for a test")

    def pulled(self, days: int = 0) -> dict[str, Any]:
        """The next job, so many days later."""
        self.clock.pass_by(days * DAY)
        [job] = self.scheduler.pull(worker_id="w", limit=1)["jobs"]
        return dict(job)

    def begun(self, job: dict[str, Any]) -> dict[str, Any]:
        answer = self.scheduler.objects.begin(job["job_id"], **proof(job))
        self.entered += answer["entered"]
        return answer

    def finished(self, job: dict[str, Any], finding: str, **members: Any) -> dict[str, Any]:
        told = {"reason": "looked into", "evidence_refs": ["ev_2"], **members}
        return self.scheduler.objects.finish(job["job_id"], finding=finding, **told, **proof(job))

    def verified(self, finding: str, days: int = 0, **members: Any) -> dict[str, Any]:
        """A whole round: pull, begin, and finish unless it has ended."""
        job = self.pulled(days)
        answer = self.begun(job)
        return self.finished(job, finding, **members) if answer["entered"] else answer

    def events(self, object_type: str, object_id: str) -> list[dict[str, Any]]:
        found = self.scheduler.audit(object_type=object_type, object_id=object_id)
        return list(found["events"])


def proof(job: dict[str, Any]) -> dict[str, Any]:
    return {"worker_id": job["worker_id"], "lease_token": job["lease_token"]}


__all__ = ["DAY", "GATES", "WHOLE", "Clock", "Scheduler", "Town", "proof"]
