"""The whole scheduler as a model in memory, written from the requirement document alone.

It shares nothing with the package: its own times, its own validation, lists instead of indexes. Ids, tokens and
messages are its own; the comparison maps them. Where the document is silent the model follows decisions made
elsewhere: a follow-up job has the priority, attempts, correlation and queue of the job it follows; a renewal changes
only the end of the lease; a lease has expired when its end is not later than now; a cancellation without a reason
says so.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

from tests.jobs.oracle_bodies import (
    ACTIONS,
    PRIORITIES,
    SECOND,
    TYPES,
    Answer,
    Job,
    Members,
    Settings,
    ack_faults,
    at_of,
    batch_faults,
    cancel_faults,
    enqueue_faults,
    fail_faults,
    pull_faults,
    refused,
    refused_for,
    release_faults,
    renew_faults,
    requeue_faults,
    text,
)

list_ = list  # the model has a call of this name


@dataclass
class Oracle:
    """The caller sets `now`; `real_name` maps a job to its id on the side under test (FAIL-4).

    `known_events` are the stored audit events that a strict check accepts: id to (object type, object id, job id).
    """

    settings: Settings
    real_name: Callable[[str], str]
    now: int = 0
    jobs: list[Job] = field(default_factory=list)
    objects: dict[tuple[str, str], tuple[int | None, int]] = field(default_factory=dict)
    job_events: dict[str, int] = field(default_factory=dict)
    state_events: dict[tuple[str, str], int] = field(default_factory=dict)
    alerts: list[str] = field(default_factory=list)
    known_events: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    ends: list[tuple[int, str, bool]] = field(default_factory=list)  # time, status afterwards, is it an attempt
    _named: int = 0

    # Enqueue

    def enqueue(self, body: Members) -> Answer:
        faults = enqueue_faults(body, self.now)
        return refused_for(faults) if faults else self._stored(body)

    def enqueue_batch(self, body: Members) -> Answer:
        faults = batch_faults(body, "jobs")
        if faults:
            return refused_for(faults)
        saved = (list(self.jobs), dict(self.job_events), self._named)
        results = []
        for entry in body["jobs"]:
            status, answer = self.enqueue(entry)
            results.append({"status": status, **answer})
        if body.get("atomic") and any(result["status"] >= 400 for result in results):
            self.jobs, self.job_events, self._named = saved
            shown = [result if result["status"] >= 400 else {"status": 422, "stored": False} for result in results]
            return refused(422, "batch_rejected", results=shown)
        return 200, {"results": results}

    def _stored(self, body: Members) -> Answer:
        requested = at_of(body, "run_at")
        run_at = self.now if requested is None else requested
        key = body.get("idempotency_key") or f"{body['object_id']}:{body['action']}:{text(run_at)}"
        for job in self.jobs:
            if job.key == key:
                named = [name for name in ("object_type", "object_id", "action") if getattr(job, name) != body[name]]
                differs = named + ["scheduled_for"] * (requested is not None and requested != job.scheduled_for)
                differs += ["payload"] * (body.get("payload") != job.payload)
                if differs:
                    facts = {"idempotency_key": key, "job_id": job.job_id, "differs": differs}
                    return refused(409, "idempotency_key_conflict", **facts)
                return 200, {"deduplicated": True, "job": job.shown()}
        if body.get("unique") is not None:
            work = (body["object_type"], body["object_id"], body["action"])
            for job in self.jobs:
                if job.status in ("queued", "running") and (job.object_type, job.object_id, job.action) == work:
                    return 200, {"deduplicated": True, "job": job.shown()}
        if run_at < self.now:
            return refused_for([("run_at", "run_at_in_past")], run_at=text(run_at), now=text(self.now))
        self._named += 1
        job = Job(
            number=len(self.jobs),
            job_id=f"J{self._named}",
            object_type=body["object_type"],
            object_id=body["object_id"],
            action=body["action"],
            run_at=run_at,
            priority=body.get("priority") or self.settings.default_priority,
            max_attempts=body.get("max_attempts") or self.settings.default_max_attempts,
            key=key,
            created_at=self.now,
            updated_at=self.now,
            scheduled_for=run_at,
            correlation_id=body.get("correlation_id"),
            queue=body.get("queue") or "default",
            payload=body.get("payload"),
        )
        self.jobs.append(job)
        self.job_events[job.job_id] = 1
        return 201, {"deduplicated": False, "job": job.shown()}

    # Pull

    def pull(self, body: Members) -> Answer:
        faults = pull_faults(body, self.now, self.settings)
        if faults:
            return refused_for(faults)
        requested = at_of(body, "now")
        due_by = self.now if requested is None else requested
        lost = [job for job in self.jobs if job.status == "running" and _end_of(job) <= self.now]
        for job in lost:
            self._expire(job)
        lease = body.get("lease_sec") or self.settings.lease_sec
        shown = []
        for job in self._selected(body, due_by):
            self._named += 1
            job.status, job.worker_id, job.token = "running", body["worker_id"], f"T{self._named}"
            job.lease_end, job.updated_at = self.now + lease * SECOND, self.now
            job.deliveries += 1
            job.progress = None
            self.job_events[job.job_id] += 1
            shown.append(job.shown(job.token))
        return 200, {"now": text(due_by), "count": len(shown), "reclaimed": len(lost), "jobs": shown}

    def _selected(self, body: Members, due_by: int) -> list[Job]:
        selected = [
            job
            for job in sorted(self.jobs, key=self._place)
            if job.status == "queued"
            and job.run_at <= due_by
            and job.object_type in (body.get("object_types") or TYPES)
            and job.action in (body.get("actions") or ACTIONS)
            and (body.get("pairs") is None or [job.object_type, job.action] in body["pairs"])
        ]
        if body.get("queues"):
            selected = [job for queue in body["queues"] for job in selected if job.queue == queue]
        if self.settings.one_running_per_object:
            busy = {(job.object_type, job.object_id) for job in self.jobs if job.status == "running"}
            free = []
            for job in selected:
                if (job.object_type, job.object_id) not in busy:
                    busy.add((job.object_type, job.object_id))
                    free.append(job)
            selected = free
        return selected[: body.get("limit") or self.settings.pull_default_limit]

    def _place(self, job: Job) -> tuple[int, int, int, int]:
        """PULL-6 or POL-3; ties go to the earlier `run_at`, so that no job is overtaken by one 300 s later."""
        rank = PRIORITIES.index(job.priority)
        ahead = self.settings.head_start_sec[rank] if self.settings.pull_order == "weighted" else 0
        return job.run_at - ahead * SECOND, job.run_at, rank, job.number

    def _expire(self, job: Job) -> None:
        delay = self.settings.lease_expiry_retry_delay_sec * SECOND
        job.ever_expired = True
        self._attempt_failed(job, f"lease_expired: {job.worker_id}", delay, "expiry", keep=not delay)

    # Ack

    def ack(self, job_id: str, body: Members) -> Answer:
        job = self._job(job_id)
        if job is None:
            return refused(404, "job_not_found", job_id=job_id)
        token = body.get("lease_token")
        if job.status == "succeeded" and (token == job.last_token if token is not None else job.deliveries == 1):
            return 200, {"already_acked": True, **self._acked(job, None)}
        if (held := self._not_held(job, body)) is not None:
            return held
        faults = ack_faults(body, self.now)
        if faults:
            return refused_for(faults)
        event = body.get("audit_event_id")
        if event is not None and self.settings.audit_event_check == "strict":
            about = self.known_events.get(event)
            if about is None or (about[:2] != (job.object_type, job.object_id) and about[2] != job.job_id):
                return refused_for([("audit_event_id", "audit_event_unknown")])
        self._named += 1
        self._end(job, "ack", "succeeded")
        job.outcome = body.get("outcome")
        job.outcome_result = body.get("outcome_result")
        job.audit_event_id = event or f"E{self._named}"
        return 200, {"already_acked": False, **self._acked(job, self._written_back(job, body))}

    def ack_batch(self, body: Members) -> Answer:
        faults = batch_faults(body, "acks")
        if faults:
            return refused_for(faults)
        results = []
        for entry in body["acks"]:
            members = dict(entry)
            status, answer = self.ack(members.pop("job_id"), members)
            results.append({"status": status, **answer})
        return 200, {"results": results}

    def _written_back(self, job: Job, body: Members) -> str | None:
        about = (job.object_type, job.object_id)
        old, version = self.objects.get(about, (None, 0))
        new = at_of(body, "next_action_at") if "next_action_at" in body else old
        if new != old:
            version += 1
            self.state_events[about] = self.state_events.get(about, 0) + 1
        self.objects[about] = (new, version)
        if body.get("next_action_at") is None or not self.settings.auto_followup:
            return None
        selected: Members = {
            "object_type": job.object_type,
            "object_id": job.object_id,
            "action": body.get("next_action") or job.action,
            "run_at": body["next_action_at"],
            "priority": job.priority,
            "max_attempts": job.max_attempts,
            "correlation_id": job.correlation_id,
            "queue": job.queue,
            "payload": job.payload if body.get("next_action") in (None, job.action) else None,
        }
        status, answer = self._stored(selected)
        if status >= 400 or answer["job"]["status"] in ("succeeded", "failed", "dead_letter"):
            # The key belongs to other work or to a finished job: the object still gets its follow-up.
            named = text(at_of(body, "next_action_at") or 0)
            whose = f"{job.key} {job.object_id}:{selected['action']}:{named}"
            key = f"followup:{sha256(whose.encode()).hexdigest()}"
            status, answer = self._stored({**selected, "idempotency_key": key})
        return answer["job"]["job_id"] if status < 400 else None

    def _acked(self, job: Job, followup: str | None) -> dict[str, Any]:
        at = self.objects[job.object_type, job.object_id][0]
        about = {"object_type": job.object_type, "object_id": job.object_id}
        about_at = {**about, "next_action_at": None if at is None else text(at)}
        return {"job": job.shown(), "object": about_at, "followup_job_id": followup}

    # Fail

    def fail(self, job_id: str, body: Members) -> Answer:
        job = self._job(job_id)
        if job is None:
            return refused(404, "job_not_found", job_id=job_id)
        token = body.get("lease_token")
        first = job.deliveries == 1 and job.status != "running"
        if job.last_end == "fail" and (token == job.last_token if token is not None else first):
            retry = job.status in ("queued", "running")
            return 200, {"already_failed": True, "retry": retry, "job": job.shown()}
        if (held := self._not_held(job, body)) is not None:
            return held
        faults = fail_faults(body)
        if faults:
            return refused_for(faults)
        error = body["error"]
        if len(error) > 4096:
            error = error[: 4096 - len("…[truncated]")] + "…[truncated]"
        if body.get("cancelled"):
            self._given_up(job, error, "fail", attempts=1)
        elif body.get("retryable") is False:
            job.attempt += 1
            job.last_error = error
            self._end(job, "fail", "failed")
        else:
            given = body.get("retry_delay_sec")
            delay = self._backoff(job) if given is None else int(Fraction(str(given)) * SECOND)
            self._attempt_failed(job, error, delay, "fail")
        return 200, {"already_failed": False, "retry": job.status == "queued", "job": job.shown()}

    def _backoff(self, job: Job) -> int:
        attempt = job.attempt + 1
        seconds = min(60 * 2 ** (attempt - 1), 3600)
        factor = Fraction(1)
        if self.settings.retry_jitter:
            digest = sha256(f"{self.real_name(job.job_id)}|{attempt}".encode()).digest()
            factor = Fraction(9, 10) + Fraction(2, 10) * Fraction(int.from_bytes(digest[:8], "big"), 2**64)
        return int(seconds * SECOND * factor)

    def _attempt_failed(self, job: Job, error: str, delay: int, how: str, *, keep: bool = False) -> None:
        """FAIL-2 and FAIL-5; with `keep` the job keeps its place. A job with a cancel request is not retried."""
        if job.cancel_requested_at is not None:
            self._given_up(job, error, how, attempts=1)
            return
        job.attempt += 1
        job.last_error = error
        if job.attempt >= job.max_attempts:
            self._end(job, how, "dead_letter")
            self.alerts.append(f"dead_letter:{job.job_id}:{job.deliveries}")
            return
        if not keep:
            base = self.now if self.settings.retry_base == "now" else job.run_at
            floor = self.now + min(delay, self.settings.min_retry_gap_sec * SECOND)
            job.run_at = max(base + delay, floor)
        self._end(job, how, "queued")

    def _given_up(self, job: Job, error: str, how: str, attempts: int) -> None:
        """USE-3: the job ends as failed, with outcome cancelled."""
        job.attempt += attempts
        job.last_error, job.outcome = error, "cancelled"
        self._end(job, how, "failed")

    # The other calls

    def renew(self, job_id: str, body: Members) -> Answer:
        job = self._job(job_id)
        if job is None:
            return refused(404, "job_not_found", job_id=job_id)
        if (held := self._not_held(job, body)) is not None:
            return held
        faults = renew_faults(body)
        if faults:
            return refused_for(faults)
        lease = body.get("lease_sec") or self.settings.lease_sec
        job.lease_end = max(_end_of(job), self.now + lease * SECOND)
        if body.get("progress") is not None:
            fraction_value = Decimal(str(body["progress"]))
            # Whole numbers are integers in answers.
            fraction = int(fraction_value) if fraction_value in (0, 1) else fraction_value
            job.progress = {"fraction": fraction, "note": body.get("progress_note")}
        requested = job.cancel_requested_at
        return 200, {
            "lease_expires_at": text(job.lease_end),
            "cancel_requested_at": None if requested is None else text(requested),
        }

    def release(self, job_id: str, body: Members) -> Answer:
        job = self._job(job_id)
        if job is None:
            return refused(404, "job_not_found", job_id=job_id)
        token = body.get("lease_token")
        if token is not None and job.last_end == "release" and token == job.last_token:
            return 200, {"job": job.shown()}
        if (held := self._not_held(job, body)) is not None:
            return held
        faults = release_faults(body)
        if faults:
            return refused_for(faults)
        if job.cancel_requested_at is not None:
            self._given_up(job, "cancelled: released", "release", attempts=0)
            self.ends.append((self.now, "failed", False))
        else:
            self._end(job, "release", "queued")
        return 200, {"job": job.shown()}

    def cancel(self, job_id: str, body: Members) -> Answer:
        job = self._job(job_id)
        if job is None:
            return refused(404, "job_not_found", job_id=job_id)
        faults = cancel_faults(body)
        if faults:
            return refused_for(faults)
        if job.status == "running":
            if job.cancel_requested_at is None:
                job.cancel_requested_at = job.updated_at = self.now
                self.job_events[job_id] += 1
            return 200, {"job": job.shown()}
        if job.status != "queued":
            return refused(409, "job_not_queued", status=job.status)
        reason = body.get("reason") or "no_reason"
        job.status, job.last_error, job.updated_at = "failed", f"cancelled: {reason}", self.now
        self.job_events[job_id] += 1
        self.ends.append((self.now, "failed", False))
        return 200, {"job": job.shown()}

    def requeue(self, job_id: str, body: Members) -> Answer:
        job = self._job(job_id)
        if job is None:
            return refused(404, "job_not_found", job_id=job_id)
        faults = requeue_faults(body, self.now)
        if faults:
            return refused_for(faults)
        if job.status not in ("dead_letter", "failed"):
            return refused(409, "job_not_dead_letter", status=job.status)
        job.status, job.attempt, job.updated_at = "queued", 0, self.now
        job.cancel_requested_at = job.outcome = None
        job.ever_expired = job.ever_expired or job.deliveries > 0
        requested = at_of(body, "run_at")
        job.run_at = self.now if requested is None else requested
        self.job_events[job_id] += 1
        return 200, {"job": job.shown()}

    def cancel_batch(self, body: Members) -> Answer:
        """USE-5, without faults: newest first, each like a single cancellation."""
        return self._operated(body, "queued", lambda job: self.cancel(job.job_id, _only(body, "reason")))

    def requeue_batch(self, body: Members) -> Answer:
        return self._operated(
            body, "dead_letter", lambda job: self.requeue(job.job_id, _only(body, "reason", "run_at"))
        )

    def _operated(self, body: Members, usual: str, change: Callable[[Job], object]) -> Answer:
        fit = self._listed({"status": usual, **body["filter"]})
        page, events = fit[: body["limit"]], dict(self.job_events)
        for job in page:
            change(job)
        changed = sum(self.job_events[job.job_id] != events[job.job_id] for job in page)
        cursor = {"job_id": page[-1].job_id} if len(fit) > len(page) else {"job_id": None}
        return 200, {"matched": len(page), "changed": changed, "next_cursor": cursor["job_id"]}

    def count(self, query: Members) -> Answer:
        return 200, {"count": len(self._listed(query))}

    def list(self, query: Members) -> Answer:
        return 200, {"jobs": [job.shown() for job in self._listed(query)], "next_cursor": None}

    def _listed(self, query: Members) -> "list_[Job]":
        """Jobs that match all filters, newest first."""
        return [job for job in reversed(self.jobs) if all(_fits(job, name, query[name]) for name in query)]

    def metrics(self, window_sec: int = 3600) -> dict[str, Any]:
        due = [
            job.run_at
            for job in self.jobs
            if (job.status == "queued" and job.run_at <= self.now)
            or (job.status == "running" and _end_of(job) <= self.now)
        ]
        ended = [(status, tried) for at, status, tried in self.ends if at > self.now - window_sec * SECOND]
        over = [status for status, _ in ended if status != "queued"]
        tries = [status for status, tried in ended if tried]
        return {
            "now": text(self.now),
            "window_sec": window_sec,
            "jobs_due_count": len(due),
            "jobs_lag_seconds": Fraction(self.now - min(due), SECOND) if due else Fraction(0),
            "job_success_rate": Fraction(over.count("succeeded"), len(over)) if over else None,
            "job_retry_rate": Fraction(tries.count("queued"), len(tries)) if tries else None,
            "dead_letter_count": sum(job.status == "dead_letter" for job in self.jobs),
        }

    # Internals

    def _job(self, job_id: str) -> Job | None:
        return next((job for job in self.jobs if job.job_id == job_id), None)

    def _not_held(self, job: Job, body: Members) -> Answer | None:
        """ACK-5 from its third row on, with ACK-6."""
        worker, token = body.get("worker_id"), body.get("lease_token")
        if job.status != "running":
            return refused(409, "job_not_running", status=job.status)
        if (worker is not None and worker != job.worker_id) or (token is not None and token != job.token):
            facts = {"job_id": job.job_id, "delivery_count": job.deliveries, "current_worker_id": job.worker_id}
            return refused(409, "lease_lost", **facts)
        if token is None and job.ever_expired:
            return refused(409, "lease_token_required")
        return refused(409, "lease_expired") if _end_of(job) <= self.now else None

    def _end(self, job: Job, how: str, status: str) -> None:
        """End one delivery."""
        job.status, job.last_end, job.last_token = status, how, job.token
        job.worker_id = job.token = job.lease_end = None
        job.updated_at = self.now
        self.job_events[job.job_id] += 1
        if how != "release":
            self.ends.append((self.now, status, True))


def _fits(job: Job, name: str, selected: Any) -> bool:
    match name:
        case "error_code":
            return job.last_error is not None and re.split("[:\n]", job.last_error, maxsplit=1)[0][:64] == selected
        case "created_before":
            return job.created_at < (at_of({name: selected}, name) or 0)
        case "created_after":
            return job.created_at >= (at_of({name: selected}, name) or 0)
        case _:
            return bool(getattr(job, name) == selected)


def _only(body: Members, *names: str) -> Members:
    return {name: body[name] for name in names if name in body}


def _end_of(job: Job) -> int:
    assert job.lease_end is not None
    return job.lease_end
