"""The calls of the model: jobs with leases, begin, finish and settle, and what people do to objects.

Jobs are named by their order of enqueue; lease tokens are pairs of a job and its delivery.
"""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from tests.jobs.governance.model import Barred, Ending, Model
from tests.jobs.governance.model_tables import (
    AT_REVIEW,
    DAY,
    HOUR,
    LOST,
    NEXT,
    RANK,
    ROWS,
    STALE,
    VERIFYING,
    Thing,
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
    wished: bool = False
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
        thing = self.things.get((kind, name))
        if self.keys.get((name, action, run_at)) is None and action in VERIFYING and thing and thing["closed"]:
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
        self.told.append(("scheduler_job", job.name))

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
            if job.status == "running" and job.action in VERIFYING and (job.kind, job.id) in self.things
        }
        due = [job for job in self.jobs if job.status == "queued" and job.run_at <= self.now]
        chosen: list[Job] = []
        for job in sorted(due, key=lambda job: (job.run_at, job.priority, job.name)):
            key = (job.kind, job.id)
            verifies = job.action in VERIFYING and key in self.things
            if len(chosen) == limit or (verifies and key in busy):
                continue
            if verifies:
                busy.add(key)
            chosen.append(job)
        return chosen

    def _let_out(self, job: Job) -> bool:
        """GATE-1a."""
        thing = self.things.get((job.kind, job.id))
        if thing is None:
            return True
        before = dict(thing)
        ending = self.enter(thing, job.action, job.deferrals)
        if ending is not None and ending.outcome != "noop":
            is_told = ending.trace is not None and not (ending.thing is not None and ending.how == "ack")
            self.end(job, thing, ending)
            if not is_told:
                self._event("decision_gate", thing, self._resting(thing, (), job))
            return False
        if ending is None and thing != before:
            self._event("investigation", thing, self._resting(thing, (), job))
        job.begun, job.begun_version = job.deliveries + 1, thing["version"]
        return True

    def _expire(self, job: Job) -> None:
        job.attempt += 1
        job.error = f"lease_expired: {job.worker}"
        if job.wished:
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
            thing = self.things.get((job.kind, job.id))
            severe = thing is not None and self.is_risky(thing)
            self.told.append(("alert", "job.dead_letter", "critical" if severe else "warning"))
        if status in ("failed", "dead_letter"):
            self._keep_awaited(job)

    def _keep_awaited(self, job: Job) -> None:
        """An object whose planned job will never be done gets another, after a day at the earliest."""
        thing = self.things.get((job.kind, job.id))
        if thing is None or thing["next_action"] is None or not self._is_own(thing, job):
            return
        old = dict(thing)
        self.plan(thing)
        thing["next_action_at"] = max(thing["next_action_at"], self.now + DAY)
        self._event("state_transition", thing, self._resting(thing, (), job))
        self._follow(thing, job, old)

    def _failed(self, job: Job, error: str, delay: int | None, *, again: bool) -> None:
        job.attempt += 1
        job.error = error
        if again and job.wished:
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
            if not job.wished:
                self._job_event(job)
            job.wished = True
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
        job.wished, job.outcome = False, None
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
        if job.wished:
            job.error, job.outcome = "cancelled: released", "cancelled"
        self._over(job, "failed" if job.wished else "queued", "release")

    # A governed job

    def begin(self, token: Token) -> bool:
        if self._is_over(token):
            return False
        job, thing = self._subject(token)
        before = dict(thing)
        if job.begun == job.deliveries:
            ending = self.barred(thing, job.action, job.deferrals)
            if ending is None and thing["closed"] and job.action in VERIFYING and is_unsure(thing):
                ending = Ending("fail", "ontic_limit_reached", "ontic_limit_reached")
        else:
            ending = self.enter(thing, job.action, job.deferrals)
        if ending is not None:
            self.end(job, thing, ending)
            return False
        if thing != before:
            self._event("investigation", thing, self._resting(thing, (), job))
        job.begun, job.begun_version = job.deliveries, thing["version"]
        return True

    def finish(self, token: Token, finding: str, refs: tuple[str, ...], unknown: str | None) -> None:
        if self._is_over(token):
            return
        job, thing = self._subject(token)
        begun = job.begun == job.deliveries
        if job.action in VERIFYING and not begun:
            raise Barred("not_begun")
        if begun and job.begun_version != thing["version"]:
            self.end(job, thing, Ending("again", "state_conflict", "state_conflict"))
            return
        self.end(job, thing, self.conclude(thing, job.action, finding, refs, unknown, deferrals=job.deferrals))

    def ack(self, token: Token, seconds: int | None) -> None:
        if self.jobs[token[0]].ended == (token, "ack") and self.jobs[token[0]].status == "succeeded":
            return
        job, thing = self._subject(token)
        ending = self.acknowledged(thing, job.action, job.deferrals)
        after = ending.thing
        if ending.how == "ack" and after is not None and after["next_action"] is not None:
            if seconds is not None:
                after["next_action_at"] = self.now + seconds * SECOND
            elif ending.outcome == "noop" and self._is_awaited(thing, job):
                after["next_action"], after["next_action_at"] = thing["next_action"], thing["next_action_at"]
        self.end(job, thing, ending)

    def _is_awaited(self, thing: Thing, but: Job) -> bool:
        there = [job for job in self.jobs if job.status in ("queued", "running") and job is not but]
        return any(self._is_own(thing, job) for job in there)

    def settle(self, token: Token) -> None:
        if self._is_over(token):
            return
        if self._held(token).action not in ("decay", "archive"):
            raise Barred("not_begun")
        job, thing = self._subject(token)
        ending = self.enter(thing, job.action, job.deferrals)
        found = self.by_itself(thing, job.action)
        self.end(job, thing, ending or self.conclude(thing, job.action, found, (), deferrals=job.deferrals))

    def _is_over(self, token: Token) -> bool:
        job = self.jobs[token[0]]
        if job.ended is None or job.ended[0] != token:
            return False
        return job.ended[1] in ("fail", "release") or (job.ended[1] == "ack" and job.status == "succeeded")

    def _subject(self, token: Token) -> tuple[Job, Thing]:
        job = self._held(token)
        if (job.kind, job.id) not in self.things:
            raise Barred("object_not_found")
        return job, self.things[job.kind, job.id]

    def end(self, job: Job, thing: Thing, ending: Ending) -> None:
        if ending.how == "fail" and self._is_own(thing, job):
            ending.thing = dict(thing)
            self.plan(ending.thing)
            if ending.thing["next_action"] == job.action and ending.thing["next_action_at"] <= self.now:
                ending.thing["next_action_at"] = self.now + DAY
        self._carry(thing, ending, job)
        match ending.how:
            case "ack":
                job.outcome = ending.outcome
                self._over(job, "succeeded", "ack")
            case "later":
                job.deferrals += 1
                if job.wished:
                    job.error, job.outcome = "cancelled: deferred", "cancelled"
                    self._over(job, "failed", "release")
                else:
                    job.run_at, job.outcome = self.now + HOUR, "deferred"
                    self._over(job, "queued", "release")
            case _:
                assert ending.error is not None
                self._failed(job, ending.error, None, again=ending.how == "again")

    def _carry(self, thing: Thing, ending: Ending, job: Job | None) -> None:
        if ending.trace is not None:
            self.told.append(("trace", thing["kind"], thing["id"], ending.trace))
        before, old = thing["place"], dict(thing)
        changed = ending.thing is not None
        if ending.trace is not None and not (changed and ending.how == "ack"):
            self._event("decision_gate", thing, self._resting(thing, ending.refs, job))
        if ending.thing is not None:
            thing.update(ending.thing)
        refs = self._resting(thing, ending.refs, job)
        if changed:
            self._event("state_transition", thing, refs, before, ending.trace is not None)
        if ending.escalates:
            self.told.append(("alert", "governance.escalation", "critical" if self.is_risky(thing) else "warning"))
        if ending.rolls_back:
            self.rollbacks.append((thing["kind"], thing["id"], True))
            self._event("rollback", thing, refs)
        if ending.closes:
            for other in self.jobs:
                same = (other.kind, other.id, other.status) == (thing["kind"], thing["id"], "queued")
                if same and other.action in VERIFYING and other is not job:
                    other.status, other.error = "failed", "ontic_limit_reached"
                    self._job_event(other)
        if changed:
            self._follow(thing, job, old)

    def _is_own(self, thing: Thing, job: Job) -> bool:
        """Whether the job is the planned job of the object."""
        return (job.kind, job.id, job.action, job.planned_for) == (
            *(thing["kind"], thing["id"], thing["next_action"], thing["next_action_at"]),
        )

    def _follow(self, thing: Thing, job: Job | None, old: Thing | None = None) -> None:
        follower = self._follower(thing, job)
        if old is None or (job is not None and self._is_own(old, job)):
            return
        for other in self.jobs:
            if other.status == "queued" and other is not follower and self._is_own(old, other):
                instead = "nothing_left" if follower is None else "another"
                other.status, other.error = "failed", f"superseded: {instead}"
                self._job_event(other)

    def _follower(self, thing: Thing, job: Job | None) -> Job | None:
        action, at = thing["next_action"], thing["next_action_at"]
        if action is None or (action in VERIFYING and thing["closed"]):
            return None
        key = (thing["id"], action, at)
        there = self.keys.get(key)
        if there is not None and (there.status in OVER or (there.kind, there.id) != (thing["kind"], thing["id"])):
            after = (thing["kind"], thing["id"], thing["version"]) if job is None else job.key
            key = ("followup", after, key)
        members = {} if job is None else {"max_attempts": job.max_attempts, "priority": job.priority}
        return self._stored(thing["kind"], thing["id"], action, at, key, **members)

    def _resting(self, thing: Thing, said: tuple[str, ...], job: Job | None) -> tuple[Any, ...]:
        """AUD-6."""
        refs = tuple(said) or tuple(thing["evidence_refs"]) or tuple(thing["source_refs"])
        return (*refs, job.name) if job is not None else refs or ("user:mia",)

    def _event(
        self, what: str, thing: Thing, refs: tuple[Any, ...], before: str | None = None, traced: bool = False
    ) -> None:
        moved = None if before is None else before != thing["place"]
        self.told.append((what, thing["kind"], thing["id"], refs, moved, traced))

    # People

    def create(self, kind: str, name: str, place: str, **members: Any) -> None:
        if (kind, name) in self.things:
            raise Barred("object_exists")
        status, _, axis = place.partition("/")
        thing: Thing = {**UNSAID, **members, "kind": kind, "id": name, "place": place, "status": status}
        thing |= {"epistemic_state": axis or None, "created_at": self.now}
        thing["evidence_refs"], thing["source_refs"] = list(thing["evidence_refs"]), list(thing["source_refs"])
        thing["verify_budget_left"] = thing["auto_verify_budget"]
        if not is_unsure(thing) and thing["unknown_type"] is not None:
            raise Barred("invalid_field")
        if status == "active" and axis and not self.may_be_active(thing):
            raise Barred("missing")
        if is_unsure(thing):
            thing["unknown_type"] = thing["unknown_type"] or "out_of_scope"
            thing["uncertainty_ttl"] = thing["uncertainty_ttl"] or 7 * DAY
            thing["uncertain_since"], thing["decision_mode"] = self.now, self.mode(thing)
        thing["stale_since"] = self.now if place in STALE else None
        thing["rollback_pending"] = place in LOST
        if (kind, place) in AT_REVIEW and thing["review_due_at"] is None and thing["review_interval"] is not None:
            thing["review_due_at"] = self.now + thing["review_interval"]
        self.plan(thing)
        self.things[kind, name] = thing
        self._event("state_transition", thing, self._resting(thing, (), None))
        if place in ("rejected_poisoned", "refuted/refuted"):
            self.rollbacks.append((kind, name, True))
            self._event("rollback", thing, self._resting(thing, (), None))
        self._follow(thing, None)

    def _kept(self, thing: Thing, refs: tuple[str, ...] = ()) -> None:
        old = dict(thing)
        self.plan(thing)
        self._event("state_transition", thing, self._resting(thing, refs, None))
        self._follow(thing, None, old)

    def attach(self, kind: str, name: str, refs: tuple[str, ...], unknown: str | None) -> None:
        thing = self._known(kind, name)
        if thing["closed"] and unknown is not None and set(refs) <= set(thing["evidence_refs"]):
            raise Barred("invalid_field")
        thing["evidence_refs"] = joined(thing["evidence_refs"], refs)
        if unknown is not None and is_unsure(thing):
            thing["unknown_type"] = unknown
            thing["decision_mode"] = self.mode(thing)
            thing["closed"] = thing["closed"] if unknown == "ontic_unknowable" else None
        self._kept(thing, refs)

    def amend(self, kind: str, name: str, **members: Any) -> None:
        thing = self._known(kind, name)
        if (kind, thing["place"]) not in NEXT:
            raise Barred("illegal_transition")
        lowered = [
            n for n in ("risk_tier", "impact_tier") if RANK.index(members.get(n, thing[n])) < RANK.index(thing[n])
        ]
        if lowered:
            raise Barred("invalid_enum" if len(lowered) == 1 else "validation_failed")
        thing.update(members)
        if is_unsure(thing) and thing["decision_mode"] not in self._careful_enough(thing):
            thing["decision_mode"] = self.mode(thing)
        self._kept(thing)

    def _careful_enough(self, thing: Thing) -> tuple[str, ...]:
        """GATE-11."""
        if self.is_risky(thing):
            return "escalate", "abstain"
        tries: tuple[str, ...] = () if self.risk(thing)[0] == "medium" else ("collect",)
        tries += ("explore",) if tries and thing["unknown_type"] == "multipath" else ()
        return (*tries, "conservative", "escalate", "abstain")

    def refill(self, kind: str, name: str, budget: int | None) -> None:
        thing = self._known(kind, name)
        thing["verify_budget_left"] = thing["auto_verify_budget"] if budget is None else budget
        self._kept(thing)

    def decide(self, kind: str, name: str, action: str, finding: str, refs: tuple[str, ...]) -> None:
        thing = self._known(kind, name)
        if finding == "nonsense" or (action in CHAIN and all(act != action for _, act, _ in ROWS[kind])):
            raise Barred("invalid_enum")
        ending = self.conclude(thing, action, finding, refs, automatic=False)
        if ending.how != "ack":
            raise Barred("illegal_transition" if ending.how == "fail" and ending.trace is None else "gate_closed")
        self._carry(thing, ending, None)

    def rolled_back(self, kind: str, name: str) -> None:
        thing = self._known(kind, name)
        self.rollbacks = [(k, n, is_open and (k, n) != (kind, name)) for k, n, is_open in self.rollbacks]
        if thing["rollback_pending"]:
            thing["rollback_pending"] = False
            self._event("rollback", thing, self._resting(thing, (), None))
            self._kept(thing)

    def set_gate(self, gate: str, verdict: str, scope: str) -> None:
        self.gates[gate, scope] = verdict
        kind, _, name = scope.partition(":")
        what = "policy_override" if verdict == "override" else "decision_gate"
        self.told.append((what, kind if name else "decision", name or scope, (f"gate:{gate}",), None, False))

    def _known(self, kind: str, name: str) -> Thing:
        if (kind, name) not in self.things:
            raise Barred("object_not_found")
        return self.things[kind, name]
