"""The calls of the model: jobs with leases, begin, finish and settle, and what people do to objects.

Jobs are named by their order of enqueue; lease tokens are pairs of a job and its delivery.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.governance.model import Barred, Ending, Model
from tests.governance.model_tables import (
    AT_REVIEW,
    DAY,
    HOUR,
    LOST,
    NEXT,
    RANK,
    ROWS,
    STALE,
    VERIFYING,
    ObjectState,
    is_unsure,
    joined,
)

SECOND = 1_000_000
Token = tuple[int, int]
CHAIN = ("use", "invalidate")
OVER = ("succeeded", "failed", "dead_letter")
UNSAID: dict[str, Any] = {
    "risk_tier": "low", "impact_tier": "low", "evidence_refs": [], "source_refs": [], "review_interval": None,
    "review_due_at": None, "expires_at": None, "half_life": 30 * DAY, "impact_weight": Decimal(0),
    "reinforcement_count": 0, "falsify_if": None, "unknown_type": None, "uncertainty_ttl": None,
    "auto_verify_budget": 2, "decision_mode": None, "hard_persona_limit": False, "deception_signals": 0,
    "last_accessed_at": None, "last_reinforced_at": None, "last_verified_at": None, "stale_since": None,
    "uncertain_since": None, "closed": None, "rollback_pending": False, "verifications": 0, "version": 0,
}  # fmt: skip


@dataclass
class Job:
    name: int
    kind: str
    id: str
    action: str
    run_at: int
    key: Any
    priority: int = 1
    max_attempts: int = 3
    attempt: int = 0
    status: str = "queued"
    error: str | None = None
    outcome: str | None = None
    deliveries: int = 0
    lease_end: int = 0
    worker: str | None = None
    ended: tuple[Token, str] | None = None
    cancel_requested: bool = False
    deferrals: int = 0
    begun: int = 0
    begun_version: int = 0
    planned_for: int = -1


@dataclass
class Calls(Model):
    jobs: list[Job] = field(default_factory=list)
    keys: dict[Any, Job] = field(default_factory=dict)

    # The queue

    def enqueue(self, kind: str, name: str, action: str, run_at: int) -> None:
        obj = self.objects.get((kind, name))
        if self.keys.get((name, action, run_at)) is None and action in VERIFYING and obj and obj["closed"]:
            raise Barred("ontic_verification_closed")
        self._stored(kind, name, action, run_at, (name, action, run_at))

    def _stored(self, kind: str, name: str, action: str, run_at: int, key: Any, **members: Any) -> Job:
        if key in self.keys:
            return self.keys[key]
        job = Job(len(self.jobs), kind, name, action, run_at, key, planned_for=run_at, **members)
        self.jobs.append(job)
        self.keys[key] = job
        self._job_event(job)
        return job

    def _job_event(self, job: Job) -> None:
        self.log.append(("scheduler_job", job.name))

    def pull(self, worker: str, limit: int) -> list[Token]:
        for job in self.jobs:
            if job.status == "running" and job.lease_end <= self.now:
                self._expire(job)
        given: list[Token] = []
        withheld = True
        while withheld and not given:  # a withheld job has ended or was deferred
            withheld = False
            for job in self._chosen(limit):
                if job.status != "queued":  # ended together with an earlier one
                    continue
                if not self._let_out(job):
                    withheld = True
                    continue
                job.status, job.worker, job.lease_end = "running", worker, self.now + 60 * SECOND
                job.deliveries += 1
                self._job_event(job)
                given.append((job.name, job.deliveries))
        return given

    def _chosen(self, limit: int) -> list[Job]:
        """Due jobs in order, with one verification per governed object at a time."""
        busy = {
            (job.kind, job.id)
            for job in self.jobs
            if job.status == "running" and job.action in VERIFYING and (job.kind, job.id) in self.objects
        }
        due = [job for job in self.jobs if job.status == "queued" and job.run_at <= self.now]
        chosen: list[Job] = []
        for job in sorted(due, key=lambda job: (job.run_at, job.priority, job.name)):
            key = (job.kind, job.id)
            verifies = job.action in VERIFYING and key in self.objects
            if len(chosen) == limit or (verifies and key in busy):
                continue
            if verifies:
                busy.add(key)
            chosen.append(job)
        return chosen

    def _let_out(self, job: Job) -> bool:
        """GATE-1a."""
        obj = self.objects.get((job.kind, job.id))
        if obj is None:
            return True
        before = dict(obj)
        ending = self.enter(obj, job.action, job.deferrals)
        if ending is not None and ending.outcome != "noop":
            is_told = ending.trace is not None and not (ending.obj is not None and ending.how == "ack")
            self.end(job, obj, ending)
            if not is_told:
                self._event("decision_gate", obj, self._resting(obj, (), job))
            return False
        if ending is None and obj != before:
            self._event("investigation", obj, self._resting(obj, (), job))
        job.begun, job.begun_version = job.deliveries + 1, obj["version"]
        return True

    def _expire(self, job: Job) -> None:
        job.attempt += 1
        job.error = f"lease_expired: {job.worker}"
        if job.cancel_requested:
            self._over(job, "failed", "expiry")
            job.outcome = "cancelled"
            return
        self._over(job, "dead_letter" if job.attempt >= job.max_attempts else "queued", "expiry")

    def _over(self, job: Job, status: str, how: str) -> None:
        if job.status == "running":
            job.ended = ((job.name, job.deliveries), how)
        job.status, job.worker = status, None
        self._job_event(job)
        if status == "dead_letter":
            obj = self.objects.get((job.kind, job.id))
            severe = obj is not None and self.is_risky(obj)
            self.log.append(("alert", "job.dead_letter", "critical" if severe else "warning"))
        if status in ("failed", "dead_letter"):
            self._keep_awaited(job)

    def _keep_awaited(self, job: Job) -> None:
        """An object whose planned job will never be done gets another, after a day at the earliest."""
        obj = self.objects.get((job.kind, job.id))
        if obj is None or obj["next_action"] is None or not self._is_own(obj, job):
            return
        old = dict(obj)
        self.plan(obj)
        obj["next_action_at"] = max(obj["next_action_at"], self.now + DAY)
        self._event("state_transition", obj, self._resting(obj, (), job))
        self._follow(obj, job, old)

    def _failed(self, job: Job, error: str, delay: int | None, *, again: bool) -> None:
        job.attempt += 1
        job.error = error
        if again and job.cancel_requested:
            self._over(job, "failed", "fail")
            job.outcome = "cancelled"
        elif not again:
            self._over(job, "failed", "fail")
        elif job.attempt >= job.max_attempts:
            self._over(job, "dead_letter", "fail")
        else:
            wait = min(60 * 2 ** (job.attempt - 1), 3600) * SECOND if delay is None else delay
            job.run_at = max(job.run_at + wait, self.now + min(wait, 5 * SECOND))
            self._over(job, "queued", "fail")

    def cancel(self, name: int) -> None:
        job = self.jobs[name]
        if job.status == "running":
            if not job.cancel_requested:
                self._job_event(job)
            job.cancel_requested = True
        elif job.status == "queued":
            job.status, job.error = "failed", "cancelled: by hand"
            self._job_event(job)
            self._keep_awaited(job)
        else:
            raise Barred("job_not_queued")

    def requeue(self, name: int) -> None:
        job = self.jobs[name]
        if job.status not in ("failed", "dead_letter"):
            raise Barred("job_not_dead_letter")
        job.status, job.attempt, job.run_at = "queued", 0, self.now
        job.cancel_requested, job.outcome = False, None
        self._job_event(job)

    def _held(self, token: Token) -> Job:
        job = self.jobs[token[0]]
        if job.status != "running":
            raise Barred("job_not_running")
        if job.deliveries != token[1]:
            raise Barred("lease_lost")
        if job.lease_end <= self.now:
            raise Barred("lease_expired")
        return job

    def fail(self, token: Token) -> None:
        if self.jobs[token[0]].ended != (token, "fail"):
            self._failed(self._held(token), "the verifier raised", 0, again=True)

    def release(self, token: Token) -> None:
        if self.jobs[token[0]].ended == (token, "release"):
            return
        job = self._held(token)
        if job.cancel_requested:
            job.error, job.outcome = "cancelled: released", "cancelled"
        self._over(job, "failed" if job.cancel_requested else "queued", "release")

    # A governed job

    def begin(self, token: Token) -> bool:
        if self._is_over(token):
            return False
        job, obj = self._subject(token)
        before = dict(obj)
        if job.begun == job.deliveries:
            ending = self.barred(obj, job.action, job.deferrals)
            if ending is None and obj["closed"] and job.action in VERIFYING and is_unsure(obj):
                ending = Ending("fail", "ontic_limit_reached", "ontic_limit_reached")
        else:
            ending = self.enter(obj, job.action, job.deferrals)
        if ending is not None:
            self.end(job, obj, ending)
            return False
        if obj != before:
            self._event("investigation", obj, self._resting(obj, (), job))
        job.begun, job.begun_version = job.deliveries, obj["version"]
        return True

    def finish(self, token: Token, finding: str, refs: tuple[str, ...], unknown: str | None) -> None:
        if self._is_over(token):
            return
        job, obj = self._subject(token)
        begun = job.begun == job.deliveries
        if job.action in VERIFYING and not begun:
            raise Barred("not_begun")
        if begun and job.begun_version != obj["version"]:
            self.end(job, obj, Ending("again", "state_conflict", "state_conflict"))
            return
        self.end(job, obj, self.conclude(obj, job.action, finding, refs, unknown, deferrals=job.deferrals))

    def ack(self, token: Token, seconds: int | None) -> None:
        if self.jobs[token[0]].ended == (token, "ack") and self.jobs[token[0]].status == "succeeded":
            return
        job, obj = self._subject(token)
        ending = self.acknowledged(obj, job.action, job.deferrals)
        after = ending.obj
        if ending.how == "ack" and after is not None and after["next_action"] is not None:
            if seconds is not None:
                after["next_action_at"] = self.now + seconds * SECOND
            elif ending.outcome == "noop" and self._is_awaited(obj, job):
                after["next_action"], after["next_action_at"] = obj["next_action"], obj["next_action_at"]
        self.end(job, obj, ending)

    def _is_awaited(self, obj: ObjectState, but: Job) -> bool:
        existing = [job for job in self.jobs if job.status in ("queued", "running") and job is not but]
        return any(self._is_own(obj, job) for job in existing)

    def settle(self, token: Token) -> None:
        if self._is_over(token):
            return
        if self._held(token).action not in ("decay", "archive"):
            raise Barred("not_begun")
        job, obj = self._subject(token)
        ending = self.enter(obj, job.action, job.deferrals)
        finding = self.by_itself(obj, job.action)
        self.end(job, obj, ending or self.conclude(obj, job.action, finding, (), deferrals=job.deferrals))

    def _is_over(self, token: Token) -> bool:
        job = self.jobs[token[0]]
        if job.ended is None or job.ended[0] != token:
            return False
        return job.ended[1] in ("fail", "release") or (job.ended[1] == "ack" and job.status == "succeeded")

    def _subject(self, token: Token) -> tuple[Job, ObjectState]:
        job = self._held(token)
        if (job.kind, job.id) not in self.objects:
            raise Barred("object_not_found")
        return job, self.objects[job.kind, job.id]

    def end(self, job: Job, obj: ObjectState, ending: Ending) -> None:
        if ending.how == "fail" and self._is_own(obj, job):
            ending.obj = dict(obj)
            self.plan(ending.obj)
            if ending.obj["next_action"] == job.action and ending.obj["next_action_at"] <= self.now:
                ending.obj["next_action_at"] = self.now + DAY
        self._carry(obj, ending, job)
        match ending.how:
            case "ack":
                job.outcome = ending.outcome
                self._over(job, "succeeded", "ack")
            case "later":
                job.deferrals += 1
                if job.cancel_requested:
                    job.error, job.outcome = "cancelled: deferred", "cancelled"
                    self._over(job, "failed", "release")
                else:
                    job.run_at, job.outcome = self.now + HOUR, "deferred"
                    self._over(job, "queued", "release")
            case _:
                assert ending.error is not None
                self._failed(job, ending.error, None, again=ending.how == "again")

    def _carry(self, obj: ObjectState, ending: Ending, job: Job | None) -> None:
        if ending.trace is not None:
            self.log.append(("trace", obj["kind"], obj["id"], ending.trace))
        before, old = obj["place"], dict(obj)
        changed = ending.obj is not None
        if ending.trace is not None and not (changed and ending.how == "ack"):
            self._event("decision_gate", obj, self._resting(obj, ending.refs, job))
        if ending.obj is not None:
            obj.update(ending.obj)
        refs = self._resting(obj, ending.refs, job)
        if changed:
            self._event("state_transition", obj, refs, before, ending.trace is not None)
        if ending.escalates:
            self.log.append(("alert", "governance.escalation", "critical" if self.is_risky(obj) else "warning"))
        if ending.rolls_back:
            self.rollbacks.append((obj["kind"], obj["id"], True))
            self._event("rollback", obj, refs)
        if ending.closes:
            for other in self.jobs:
                same = (other.kind, other.id, other.status) == (obj["kind"], obj["id"], "queued")
                if same and other.action in VERIFYING and other is not job:
                    other.status, other.error = "failed", "ontic_limit_reached"
                    self._job_event(other)
        if changed:
            self._follow(obj, job, old)

    def _is_own(self, obj: ObjectState, job: Job) -> bool:
        """Whether the job is the planned job of the object."""
        return (job.kind, job.id, job.action, job.planned_for) == (
            *(obj["kind"], obj["id"], obj["next_action"], obj["next_action_at"]),
        )

    def _follow(self, obj: ObjectState, job: Job | None, old: ObjectState | None = None) -> None:
        follower = self._follower(obj, job)
        if old is None or (job is not None and self._is_own(old, job)):
            return
        for other in self.jobs:
            if other.status == "queued" and other is not follower and self._is_own(old, other):
                instead = "nothing_left" if follower is None else "another"
                other.status, other.error = "failed", f"superseded: {instead}"
                self._job_event(other)

    def _follower(self, obj: ObjectState, job: Job | None) -> Job | None:
        action, at = obj["next_action"], obj["next_action_at"]
        if action is None or (action in VERIFYING and obj["closed"]):
            return None
        key = (obj["id"], action, at)
        existing = self.keys.get(key)
        if existing is not None and (
            existing.status in OVER or (existing.kind, existing.id) != (obj["kind"], obj["id"])
        ):
            after = (obj["kind"], obj["id"], obj["version"]) if job is None else job.key
            key = ("followup", after, key)
        members = {} if job is None else {"max_attempts": job.max_attempts, "priority": job.priority}
        return self._stored(obj["kind"], obj["id"], action, at, key, **members)

    def _resting(self, obj: ObjectState, given_refs: tuple[str, ...], job: Job | None) -> tuple[Any, ...]:
        """AUD-6."""
        refs = tuple(given_refs) or tuple(obj["evidence_refs"]) or tuple(obj["source_refs"])
        return (*refs, job.name) if job is not None else refs or ("user:mia",)

    def _event(
        self, what: str, obj: ObjectState, refs: tuple[Any, ...], before: str | None = None, traced: bool = False
    ) -> None:
        moved = None if before is None else before != obj["place"]
        self.log.append((what, obj["kind"], obj["id"], refs, moved, traced))

    # People

    def create(self, kind: str, name: str, place: str, **members: Any) -> None:
        if (kind, name) in self.objects:
            raise Barred("object_exists")
        status, _, axis = place.partition("/")
        obj: ObjectState = {**UNSAID, **members, "kind": kind, "id": name, "place": place, "status": status}
        obj |= {"epistemic_state": axis or None, "created_at": self.now}
        obj["evidence_refs"], obj["source_refs"] = list(obj["evidence_refs"]), list(obj["source_refs"])
        obj["verify_budget_left"] = obj["auto_verify_budget"]
        if not is_unsure(obj) and obj["unknown_type"] is not None:
            raise Barred("invalid_field")
        if status == "active" and axis and not self.may_be_active(obj):
            raise Barred("missing")
        if is_unsure(obj):
            obj["unknown_type"] = obj["unknown_type"] or "out_of_scope"
            obj["uncertainty_ttl"] = obj["uncertainty_ttl"] or 7 * DAY
            obj["uncertain_since"], obj["decision_mode"] = self.now, self.mode(obj)
        obj["stale_since"] = self.now if place in STALE else None
        obj["rollback_pending"] = place in LOST
        if (kind, place) in AT_REVIEW and obj["review_due_at"] is None and obj["review_interval"] is not None:
            obj["review_due_at"] = self.now + obj["review_interval"]
        self.plan(obj)
        self.objects[kind, name] = obj
        self._event("state_transition", obj, self._resting(obj, (), None))
        if place in ("rejected_poisoned", "refuted/refuted"):
            self.rollbacks.append((kind, name, True))
            self._event("rollback", obj, self._resting(obj, (), None))
        self._follow(obj, None)

    def _keep(self, obj: ObjectState, refs: tuple[str, ...] = ()) -> None:
        old = dict(obj)
        self.plan(obj)
        self._event("state_transition", obj, self._resting(obj, refs, None))
        self._follow(obj, None, old)

    def attach(self, kind: str, name: str, refs: tuple[str, ...], unknown: str | None) -> None:
        obj = self._known(kind, name)
        if obj["closed"] and unknown is not None and set(refs) <= set(obj["evidence_refs"]):
            raise Barred("invalid_field")
        obj["evidence_refs"] = joined(obj["evidence_refs"], refs)
        if unknown is not None and is_unsure(obj):
            obj["unknown_type"] = unknown
            obj["decision_mode"] = self.mode(obj)
            obj["closed"] = obj["closed"] if unknown == "ontic_unknowable" else None
        self._keep(obj, refs)

    def amend(self, kind: str, name: str, **members: Any) -> None:
        obj = self._known(kind, name)
        if (kind, obj["place"]) not in NEXT:
            raise Barred("illegal_transition")
        lowered = [n for n in ("risk_tier", "impact_tier") if RANK.index(members.get(n, obj[n])) < RANK.index(obj[n])]
        if lowered:
            raise Barred("invalid_enum" if len(lowered) == 1 else "validation_failed")
        obj.update(members)
        if is_unsure(obj) and obj["decision_mode"] not in self._careful_enough(obj):
            obj["decision_mode"] = self.mode(obj)
        self._keep(obj)

    def _careful_enough(self, obj: ObjectState) -> tuple[str, ...]:
        """GATE-11."""
        if self.is_risky(obj):
            return "escalate", "abstain"
        tries: tuple[str, ...] = () if self.risk(obj)[0] == "medium" else ("collect",)
        tries += ("explore",) if tries and obj["unknown_type"] == "multipath" else ()
        return (*tries, "conservative", "escalate", "abstain")

    def refill(self, kind: str, name: str, budget: int | None) -> None:
        obj = self._known(kind, name)
        obj["verify_budget_left"] = obj["auto_verify_budget"] if budget is None else budget
        self._keep(obj)

    def decide(self, kind: str, name: str, action: str, finding: str, refs: tuple[str, ...]) -> None:
        obj = self._known(kind, name)
        if finding == "nonsense" or (action in CHAIN and all(act != action for _, act, _ in ROWS[kind])):
            raise Barred("invalid_enum")
        ending = self.conclude(obj, action, finding, refs, automatic=False)
        if ending.how != "ack":
            raise Barred("illegal_transition" if ending.how == "fail" and ending.trace is None else "gate_closed")
        self._carry(obj, ending, None)

    def rolled_back(self, kind: str, name: str) -> None:
        obj = self._known(kind, name)
        self.rollbacks = [(k, n, is_open and (k, n) != (kind, name)) for k, n, is_open in self.rollbacks]
        if obj["rollback_pending"]:
            obj["rollback_pending"] = False
            self._event("rollback", obj, self._resting(obj, (), None))
            self._keep(obj)

    def set_gate(self, gate: str, verdict: str, scope: str) -> None:
        self.gates[gate, scope] = verdict
        kind, _, name = scope.partition(":")
        what = "policy_override" if verdict == "override" else "decision_gate"
        self.log.append((what, kind if name else "decision", name or scope, (f"gate:{gate}",), None, False))

    def _known(self, kind: str, name: str) -> ObjectState:
        if (kind, name) not in self.objects:
            raise Barred("object_not_found")
        return self.objects[kind, name]
