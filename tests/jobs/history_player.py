"""Plays one history on the scheduler and on the model; the first difference is an AssertionError."""

from collections import Counter
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from pendula.jobs.calls import Calls, queries
from pendula.jobs.messages import OneJob, StoredObject, Trail, plain
from pendula.jobs.model import (
    PRIORITIES,
    AuditCheck,
    Durability,
    Policy,
    PullClock,
    PullOrder,
    Refused,
    RetryBase,
    Status,
)
from pendula.jobs.store.protocol import AuditListing, Listing
from pendula.jobs.store.sqlite import SqliteStore
from pendula.jobs.upkeep.verification import check
from pendula.server.schedulers.jobs.answering import status_of
from tests.jobs.histories import Delivery, Storyteller, settings
from tests.jobs.oracle import Oracle
from tests.jobs.oracle_bodies import Settings, text

START = 1_771_588_800_000_000  # 2026-02-20T12:00:00Z
NAMED = ("job_id", "lease_token", "followup_job_id", "audit_event_id", "next_cursor")
EVERYTHING = 100_000


class Names:
    """Maps ids of the scheduler to ids of the model, one to one."""

    def __init__(self) -> None:
        self.model: dict[str, str] = {}
        self.real: dict[str, str] = {}

    def copy(self) -> "Names":
        names = Names()
        names.model, names.real = dict(self.model), dict(self.real)
        return names

    def agree(self, real: str, model: str) -> bool:
        return self.model.setdefault(real, model) == model and self.real.setdefault(model, real) == real


class Play:
    """One history on both sides."""

    def __init__(self, path: Path, below: Callable[[int], int]) -> None:
        self.names = Names()
        self.settings = settings(below)
        self.oracle = Oracle(self.settings, lambda name: self.names.real[name], START)
        self.store = SqliteStore(path, durability=Durability.NORMAL)
        self.calls = Calls(self.store, policy_of(self.settings), lambda: self.oracle.now)
        self.story = Storyteller(below, START)
        self.transcript: list[str] = []

    def run(self, steps: int) -> None:
        try:
            for _ in range(steps):
                self.step(self.story.call() if self.story.jobs else "enqueue_batch")
            self.same_everything()
            assert check(self.store) == [], "the store is not sound"
        except Exception as difference:
            difference.add_note("\n".join([repr(self.settings), *self.transcript]))
            raise
        finally:
            self.store.close()

    def step(self, call: str) -> None:
        match call:
            case "pass_by":
                self.oracle.now += self.story.passing()
                self.story.now = self.oracle.now
            case "metrics":
                self.same_metrics(self.story.one_of([60, 3600, 604_800]))
            case "enqueue" | "enqueue_batch" | "pull" | "cancel_batch" | "requeue_batch":
                body = getattr(self.story, call)()
                self.compare(call, (body,), (body,))
            case "list" | "count":
                self.same_list(call, self.story.list())
            case "ack_batch":
                entries = [self.entry() for _ in range(1 + self.story.below(3))]
                self.compare(
                    call, ({"acks": [pair[0] for pair in entries]},), ({"acks": [pair[1] for pair in entries]},)
                )
            case _:
                job, real, model = self.story.finishing()
                if call in ("cancel", "requeue"):
                    job, real, model = self.suited(call), {}, {}
                body = getattr(self.story, call)()
                self.known_event(call, body)
                ids = ("job_nope", "job_nope") if job is None else self.story.jobs[job]
                self.compare(call, (ids[0], {**body, **real}), (ids[1], {**body, **model}))

    def suited(self, call: str) -> int:
        """Mostly a job that the call can change."""
        statuses = ("queued", "running") if call == "cancel" else ("dead_letter", "failed")
        fit = [number for number, job in enumerate(self.oracle.jobs) if job.status in statuses]
        return self.story.one_of(fit if fit and not self.story.chance(4) else range(len(self.story.jobs)))

    def entry(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """One entry of a batch of acks, with the ids of both sides."""
        job, real, model = self.story.finishing()
        body = self.story.ack()
        ids = ("job_nope", "job_nope") if job is None else self.story.jobs[job]
        return {**body, **real, "job_id": ids[0]}, {**body, **model, "job_id": ids[1]}

    def known_event(self, call: str, body: dict[str, Any]) -> None:
        """Give the model the audit events that an ack can name."""
        if call != "ack" or "audit_event_id" not in body or not self.story.chance(2):
            return
        events = queries.trail(self.store, self.calls.policy, {"limit": 1000})
        assert isinstance(events, Trail)
        if events.events:
            event = self.story.one_of(events.events)
            body["audit_event_id"] = event.id
            about = (event.object_type, event.object_id, self.names.model[str(event.job_id)])
            self.oracle.known_events[event.id] = about

    def compare(self, call: str, real: tuple[Any, ...], model: tuple[Any, ...]) -> None:
        self.transcript.append(f"{text(self.oracle.now)} {call} {real}")
        real_reply = getattr(self.calls, call)(*real)
        status, body = getattr(self.oracle, call)(*model)
        shown = {"error": real_reply.as_json()} if isinstance(real_reply, Refused) else plain(real_reply)
        # A rejected batch can name jobs that were never stored, so its names are not recorded.
        names = self.names if status < 400 else self.names.copy()
        assert (status_of(real_reply), same(shown, body, names, "")) == (status, None), (
            f"{shown} is not {status} {body}"
        )
        self.note(shown, body)

    def same_list(self, call: str, query: dict[str, Any]) -> None:
        self.transcript.append(f"{text(self.oracle.now)} {call} {query}")
        look = queries.listed if call == "list" else queries.counted
        real_reply = look(self.store, self.calls.policy, query)
        assert not isinstance(real_reply, Refused)
        shown = plain(real_reply)
        status, body = getattr(self.oracle, call)(query)
        assert (status_of(real_reply), same(shown, body, self.names, "")) == (status, None), f"{shown} is not {body}"

    def note(self, real: Any, model: Any) -> None:
        """Record jobs and deliveries for later calls."""
        for real_reply, model_reply in zip(real.get("jobs", ()), model.get("jobs", ()), strict=True):
            number = self.story.jobs.index((real_reply["job_id"], model_reply["job_id"]))
            tokens = (real_reply["lease_token"], model_reply["lease_token"])
            self.story.deliveries.append(Delivery(number, real_reply["worker_id"], tokens))
        known = {ids[1] for ids in self.story.jobs}
        self.story.jobs += [
            (self.names.real[job.job_id], job.job_id) for job in self.oracle.jobs if job.job_id not in known
        ]

    def same_everything(self) -> None:
        jobs = self.store.read(lambda look: look.jobs(Listing(EVERYTHING)))
        ids = [self.names.model[job.job_id] for job in jobs]
        assert ids == [job.job_id for job in reversed(self.oracle.jobs)], "other jobs, or in another order"
        for job in self.oracle.jobs:
            shown = queries.show(self.store, self.names.real[job.job_id])
            assert isinstance(shown, OneJob)
            assert same(plain(shown), {"job": job.shown()}, self.names, "") is None
        for (kind, name), (at, version) in self.oracle.objects.items():
            known = queries.shown_object(self.store, kind, name)
            assert isinstance(known, StoredObject)
            assert known.next_action_at == (None if at is None else text(at))
            assert known.version == version
        self.same_trail()
        self.same_metrics(3600)

    def same_trail(self) -> None:
        rows = self.store.read(lambda look: look.events(AuditListing(EVERYTHING)))
        changes = Counter(self.names.model[row.object_id] for row in rows if row.event_type == "scheduler_job")
        states = Counter((row.object_type, row.object_id) for row in rows if row.event_type == "state_transition")
        assert dict(changes) == self.oracle.job_events
        assert dict(states) == self.oracle.state_events

    def same_metrics(self, window: int) -> None:
        self.transcript.append(f"{text(self.oracle.now)} metrics {window}")
        real_reply = plain(queries.metrics(self.store, self.calls.policy, self.oracle.now, window))
        model_reply = self.oracle.metrics(window)
        assert real_reply["alerts_waiting"] == len(self.oracle.alerts)
        statuses = Counter(job.status for job in self.oracle.jobs)
        assert real_reply["jobs"] == {status.value: statuses[status.value] for status in Status}
        # Ends are counted by the second, so the second in which the window begins is not compared.
        edge = (self.oracle.now - window * 1_000_000) // 1_000_000
        uncertain = any(at // 1_000_000 == edge for at, *_ in self.oracle.ends)
        for name, value in model_reply.items():
            if not (uncertain and name.endswith("_rate")):
                assert same_number(real_reply[name], value), f"{name} is {real_reply[name]}, not {value}"


def policy_of(chosen: Settings) -> Policy:
    names = ("default_max_attempts", "pull_default_limit", "pull_max_limit", "lease_sec", "min_retry_gap_sec")
    more = ("lease_expiry_retry_delay_sec", "retry_jitter", "head_start_sec", "auto_followup", "one_running_per_object")
    policy: Policy = replace(
        Policy(),
        **{name: getattr(chosen, name) for name in (*names, *more)},
        default_priority=PRIORITIES[chosen.default_priority],
        retry_base=RetryBase(chosen.retry_base),
        pull_clock=PullClock(chosen.pull_clock),
        max_clock_step_sec=chosen.max_clock_step_sec,
        pull_order=PullOrder(chosen.pull_order),
        audit_event_check=AuditCheck(chosen.audit_event_check),
    )
    return policy


def same(real: Any, model: Any, names: Names, where: str) -> str | None:
    """The path of the first difference; None if only names differ. A rejection can have more facts than specified."""
    if isinstance(model, Mapping) and isinstance(real, Mapping):
        refusal = where.endswith((".error", ".details")) or ".fields" in where
        if (refusal and not model.keys() <= real.keys()) or (not refusal and model.keys() != real.keys()):
            return f"{where}: {sorted(real)} and {sorted(model)}"
        return next((no for name in model if (no := same(real[name], model[name], names, f"{where}.{name}"))), None)
    if isinstance(model, list) and isinstance(real, list):
        if where.endswith(".fields"):
            real, model = (sorted(faults, key=lambda fault: str(fault["field"])) for faults in (real, model))
        if len(real) != len(model):
            return f"{where}: {len(real)} and {len(model)} of them"
        pairs = enumerate(zip(real, model, strict=True))
        return next((no for n, (a, b) in pairs if (no := same(a, b, names, f"{where}[{n}]"))), None)
    if where.rpartition(".")[2] in NAMED and isinstance(real, str) and isinstance(model, str):
        return None if real == model or names.agree(real, model) else f"{where}: {real} is not {model}"
    return None if type(real) is type(model) and real == model else f"{where}: {real!r} and {model!r}"


def same_number(real: Any, model: Any) -> bool:
    if isinstance(model, Fraction) and isinstance(real, int | Decimal):
        return abs(Fraction(real) - model) <= Fraction(1, 10**9)
    return bool(real == model)
