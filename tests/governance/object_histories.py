"""Random histories of governed objects, played on the package and on the model side by side and compared.

Every step is a pair of a name and its arguments, so that a failing history can be printed, shortened and replayed.
Time stands still within a step.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from pendula.governance.messages import object_of
from pendula.governance.tables import tables_of
from pendula.jobs import JobRefused, Policy
from pendula.jobs.audit import Row
from pendula.jobs.calls import Calls as PackageCalls
from pendula.jobs.messages import plain
from pendula.jobs.model import Durability
from pendula.jobs.scheduler import Scheduler
from pendula.jobs.store.protocol import AuditListing, Listing, Reader
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.canonical import decode
from pendula.kernel.time import format_utc, parse_utc
from tests.governance.model import Barred
from tests.governance.model_calls import Calls
from tests.governance.model_tables import DAY
from tests.governance.object_history_steps import NAMES, Choices, Step
from tests.governance.plain_replies import governed
from tests.jobs.stores import NOON

COMPARED = (
    *("status", "epistemic_state", "version", "next_action", "verify_budget_left", "verifications", "closed"),
    *("decision_mode", "unknown_type", "reinforcement_count", "rollback_pending", "evidence_refs"),
)
DATES = (
    *("next_action_at", "uncertain_since", "stale_since", "last_verified_at", "last_reinforced_at"),
    *("review_due_at", "updated_at", "created_at"),
)


@cache
def _empty_store() -> bytes:
    """The bytes of a new store: copying them is far faster than creating each store."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "empty.db"
        SqliteStore(file).close()
        return file.read_bytes()


class Differs(AssertionError):
    """The package and the model disagree."""


class Pair:
    """The package and the model, side by side."""

    def __init__(self, folder: Path) -> None:
        self.now: int = NOON
        (folder / "histories.db").write_bytes(_empty_store())
        policy = Policy(retry_jitter=False, durability=Durability.NORMAL)
        self.scheduler = Scheduler(PackageCalls(SqliteStore(folder / "histories.db"), policy, lambda: self.now))
        self.user = governed(self.scheduler).as_user("mia")
        self.model = Calls(now=NOON)
        self.leases: dict[tuple[int, int], dict[str, Any]] = {}
        self._ids: list[str] = []
        self._events = self._alerts = 0
        self._traces: set[str] = set()

    def close(self) -> None:
        self.scheduler.close()

    def play(self, step: Step) -> None:
        name, arguments = step
        self.now += arguments[0] * 1_000_000 if name == "move" else 1
        self.model.now = self.now
        self.model.log = []
        package_answer = self._real(name, arguments)
        model_job = self._modelled(name, arguments)
        if package_answer != model_job:
            raise Differs(f"the package says {package_answer!r}, the model {model_job!r}")
        self._compare()

    def _real(self, name: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return getattr(self, f"_real_{name}")(*arguments)
        except JobRefused as refused:
            return f"refused: {refused.code}"

    def _modelled(self, name: str, arguments: tuple[Any, ...]) -> Any:
        try:
            match name, arguments:
                case "move", _:
                    return None
                case "create", (kind, object_id, place, members):
                    return self.model.create(kind, object_id, place, **self._in_model_units(members))
                case "amend", (kind, object_id, members):
                    return self.model.amend(kind, object_id, **self._in_model_units(members))
                case "enqueue", (kind, object_id, action, seconds):
                    return self.model.enqueue(kind, object_id, action, self.now + seconds * 1_000_000)
                case _:
                    return getattr(self.model, name)(*arguments)
        except Barred as barred:
            return f"refused: {barred.code}"

    def _in_model_units(self, members: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
        """Members with days converted to the microseconds of the model."""
        days, lengths = {"expires_at", "review_due_at"}, {"review_interval", "half_life", "uncertainty_ttl"}
        return {n: self.now + v * DAY if n in days else v * DAY if n in lengths else v for n, v in members}

    def _real_move(self, _: int) -> None:
        return None

    def _as_text(self, members: tuple[tuple[str, Any], ...]) -> dict[str, Any]:
        body: dict[str, Any] = {}
        for member, value in members:
            match member:
                case "expires_at" | "review_due_at":
                    body[member] = format_utc(self.now + value * DAY)
                case "review_interval" | "half_life" | "uncertainty_ttl":
                    body[member] = f"P{value}D"
                case _:
                    body[member] = list(value) if isinstance(value, tuple) else value
        return body

    def _real_amend(self, kind: str, name: str, members: tuple[tuple[str, Any], ...]) -> None:
        self.user.amend(kind, name, "said otherwise", **self._as_text(members))

    def _real_create(self, kind: str, name: str, place: str, members: tuple[tuple[str, Any], ...]) -> None:
        body = self._as_text(members)
        status, _, axis = place.partition("/")
        axes: Any = {"epistemic_state": axis} if axis else {}
        try:
            self.user.create(kind, name, status=status, **axes, **body)
        except JobRefused as refused:
            if {fault["code"] for fault in refused.details.get("fields", [])} == {"missing_field"}:
                raise Missing(refused.refused) from None
            raise

    def _real_enqueue(self, kind: str, name: str, action: str, seconds: int) -> None:
        at = format_utc(self.now + seconds * 1_000_000)
        self.scheduler.enqueue(object_type=kind, object_id=name, action=action, run_at=at)

    def _real_pull(self, worker: str, limit: int) -> list[tuple[int, int]]:
        taken = []
        for job in self.scheduler.pull(worker_id=worker, limit=limit, lease_sec=60).jobs:
            token = (self._index(job.job_id), job.delivery_count)
            self.leases[token] = {"worker_id": worker, "lease_token": job.lease_token}
            taken.append(token)
        return taken

    def _real_begin(self, token: tuple[int, int]) -> bool:
        return bool(governed(self.scheduler).begin(self._ids[token[0]], **self.leases[token])["entered"])

    def _real_finish(self, token: tuple[int, int], finding: str, refs: tuple[str, ...], unknown: str | None) -> None:
        body: dict[str, Any] = {
            "finding": finding,
            "reason": "looked into",
            "evidence_refs": list(refs),
            "unknown_type": unknown,
        }
        body = {name: value for name, value in body.items() if value is not None}
        governed(self.scheduler).finish(self._ids[token[0]], **body, **self.leases[token])

    def _real_ack(self, token: tuple[int, int], seconds: int | None) -> None:
        at = {} if seconds is None else {"next_action_at": format_utc(self.now + seconds * 1_000_000)}
        self.scheduler.ack(self._ids[token[0]], result="succeeded", **at, **self.leases[token])

    def _real_settle(self, token: tuple[int, int]) -> None:
        governed(self.scheduler).settle(self._ids[token[0]], **self.leases[token])

    def _real_fail(self, token: tuple[int, int]) -> None:
        body: dict[str, Any] = {"error": "the verifier raised", "retry_delay_sec": 0}
        self.scheduler.fail(self._ids[token[0]], **body, **self.leases[token])

    def _real_release(self, token: tuple[int, int]) -> None:
        self.scheduler.release(self._ids[token[0]], **self.leases[token])

    def _real_cancel(self, name: int) -> None:
        self.scheduler.cancel(self._ids[name], reason="by hand")

    def _real_requeue(self, name: int) -> None:
        self.scheduler.requeue(self._ids[name])

    def _real_attach(self, kind: str, name: str, refs: tuple[str, ...], unknown: str | None) -> None:
        body: dict[str, Any] = {} if unknown is None else {"unknown_type": unknown}
        self.user.attach_evidence(kind, name, *refs, **body)

    def _real_refill(self, kind: str, name: str, budget: int | None) -> None:
        self.user.refill(kind, name, "worth it", **({} if budget is None else {"budget": budget}))

    def _real_set_gate(self, gate: str, verdict: str, scope: str) -> None:
        self.user.set_gate(gate, verdict, "by chance", scope=scope)

    def _real_decide(self, kind: str, name: str, action: str, finding: str, refs: tuple[str, ...]) -> None:
        self.user.decide(kind, name, action, finding, reason="seen", evidence_refs=list(refs))

    def _real_rolled_back(self, kind: str, name: str) -> None:
        self.user.rollback_finished(kind, name)

    # Comparing

    def _index(self, job_id: str) -> int:
        self._learn()
        return self._ids.index(job_id)

    def _learn(self) -> None:
        """Ids in the order of the enqueues."""
        rows = self.scheduler.calls.store.read(lambda look: look.jobs(Listing(limit=1000)))
        self._ids = [job.job_id for job in sorted(rows, key=lambda job: job.seq)]

    def _compare(self) -> None:
        log, jobs, objects = self.scheduler.calls.store.read(self._look)
        if sorted(map(repr, log)) != sorted(map(repr, self.model.log)):
            raise Differs(f"log:\n  package {sorted(map(repr, log))}\n  model   {sorted(map(repr, self.model.log))}")
        for job, row in zip(self.model.jobs, jobs, strict=True):
            model_job = (job.kind, job.id, job.action, job.run_at, job.status, job.attempt, job.outcome, job.deliveries)
            if row[:-1] != model_job or _first(row[-1]) != _first(job.error):
                raise Differs(f"job {job.name}:\n  package {row}\n  model   {(*model_job, job.error)}")
        for key, obj in self.model.objects.items():
            self._compare_object(obj, objects[key])
        if len(objects) != len(self.model.objects):
            raise Differs("not the same objects")

    def _look(self, look: Reader) -> tuple[list[Any], list[Any], dict[Any, Any]]:
        rows = sorted(look.jobs(Listing(limit=1000)), key=lambda job: job.seq)
        self._ids = [job.job_id for job in rows]
        jobs = [
            (
                *(j.object_type, j.object_id, j.action, j.run_at, j.status, j.attempt, j.outcome, j.delivery_count),
                j.last_error,
            )
            for j in rows
        ]
        log: list[Any] = [self._event_entry(row) for row in look.events(AuditListing(limit=1000, after=self._events))]
        self._events += len(log)
        for n, alert in look.alerts_waiting(self._alerts, 100):
            self._alerts = n
            log.append(("alert", alert["alert"], alert["severity"]))
        objects = {}
        for kind, names in NAMES.items():
            for row_object in tables_of(look).page(kind, None, "", 10):
                objects[kind, row_object.object_id] = plain(object_of(row_object))
            log += [trace for name in sorted(set(names)) for trace in self._new_traces(look, kind, name)]
        return log, jobs, objects

    def _event_entry(self, row: Row) -> tuple[Any, ...]:
        """An event without ids and times."""
        event: Any = decode(row.body.encode())
        refs = [self._named(ref) for ref in event["evidence_refs"]]
        if row.event_type == "scheduler_job":
            return "scheduler_job", self._ids.index(row.object_id)
        moved = event["after"].get("transitioned")
        traced = row.event_type == "state_transition" and "decision_trace_id" in event
        return row.event_type, row.object_type, row.object_id, tuple(refs), moved, traced

    def _named(self, ref: str) -> str | int:
        job = ref.removeprefix("scheduler_job:")
        return ref if job == ref else self._ids.index(job)

    def _new_traces(self, look: Reader, kind: str, name: str) -> Iterator[tuple[str, str, str, str]]:
        for trace, body in tables_of(look).traces(kind, name, 20):
            if trace not in self._traces:
                assert isinstance(body, dict)
                self._traces.add(trace)
                yield "trace", kind, name, str(body["outcome"])

    def _compare_object(self, obj: dict[str, Any], shown: dict[str, Any]) -> None:
        for name in COMPARED:
            if shown[name] != obj[name]:
                raise Differs(f"{name} of {obj['kind']} {obj['id']}: package {shown[name]!r}, model {obj[name]!r}")
        for name in DATES:
            shown_at = None if shown[name] is None else parse_utc(shown[name])
            if shown_at != obj[name]:
                raise Differs(f"{name} of {obj['kind']} {obj['id']}: package {shown[name]}, model {obj[name]}")


class Missing(JobRefused):
    """Fields that the state requires are missing."""

    def __init__(self, refused: Any) -> None:
        super().__init__(refused)
        self.__dict__["code"] = "missing"


def _first(error: str | None) -> str | None:
    """The code of an error without the sentence after it."""
    if error is None or error.startswith(("gate_", "lease_expired", "cancelled")):
        return error
    return error.partition(":")[0]


def play_history(seed: int, folder: Path, count: int) -> list[Step]:
    """A history that both sides answer alike; raises `Differs` with a minimal one otherwise."""
    pair, steps = Pair(folder), []
    choices = Choices(Random(seed), pair.model)
    try:
        for step in choices.steps(count):
            steps.append(step)
            pair.play(step)
            choices.tokens = list(pair.leases)
    except Differs as differs:
        shortest = shrunk(steps, folder)
        text = "\n".join(f"  {name}{arguments!r}" for name, arguments in shortest)
        raise Differs(f"seed {seed}: {differs}\n{text}") from None
    finally:
        pair.close()
    return steps


def shrunk(steps: list[Step], folder: Path) -> list[Step]:
    """The history without the steps that the difference does not need."""
    for at in range(len(steps) - 2, -1, -1):
        without = [*steps[:at], *steps[at + 1 :]]
        place = folder / f"without-{at}-{len(steps)}"
        place.mkdir()
        if _differ(without, place):
            steps = without
    return steps


def _differ(steps: list[Step], folder: Path) -> bool:
    pair = Pair(folder)
    try:
        for step in steps:
            pair.play(step)
    except Differs:
        return True
    except (KeyError, IndexError):  # a step about a job that is no longer created
        return False
    finally:
        pair.close()
    return False
