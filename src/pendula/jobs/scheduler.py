"""The Python API: the calls of the HTTP API as methods, with the same members, replies and errors."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pendula.jobs.calls import LOCAL, Answer, Caller, Calls, Reply, heartbeats, plans, queries, why
from pendula.jobs.calls import past as moments
from pendula.jobs.model import SECOND, Durability, JobRefused, Policy, Refused
from pendula.jobs.store.file.store_time import MachineTime
from pendula.jobs.store.sqlite import SqliteStore
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_utc
from pendula.kernel.wallclock import SelfCheckingClock, boot_id, steady_us

Members = Any  # members of a body


class Scheduler:
    """Jobs of one store. A refused call raises `JobRefused`; nothing was changed.

    Every method that changes something returns when the change is durable.
    """

    def __init__(self, calls: Calls, caller: Caller = LOCAL) -> None:
        self.calls = calls
        self.caller = caller

    @classmethod
    def open(
        cls,
        path: str | Path,
        policy: Policy | None = None,
        *,
        object_types: Iterable[str] = (),
        actions: Iterable[str] = (),
    ) -> Self:
        """The scheduler on an SQLite file, which is created or migrated if necessary.

        `object_types` and `actions` are added to those of the policy; raises `DocumentRefused` for an invalid word.
        """
        chosen = _with_words(policy or Policy(), object_types, actions)
        store = SqliteStore(path, durability=Durability(chosen.durability))
        clock = SelfCheckingClock().now
        hold_clock(store, chosen, clock)
        return cls(Calls(store, chosen, clock))

    def close(self) -> None:
        self.calls.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def defer(
        self,
        object_type: str,
        object_id: str,
        action: str,
        *,
        in_sec: int | timedelta | None = None,
        **members: Members,
    ) -> dict[str, Any]:
        """Enqueue in one line: now, or in `in_sec` (seconds or a `timedelta`). Returns the job.

        The members are those of `enqueue`; the handler gets `payload=` as `context.payload`.
        """
        if in_sec is not None:
            members["run_at"] = format_utc(self.calls.clock() + micros(in_sec))
        given = {"object_type": object_type, "object_id": object_id, "action": action, **members}
        job: dict[str, Any] = _granted(self.calls.enqueue(given, self.caller))["job"]
        return job

    def enqueue(self, **members: Members) -> dict[str, Any]:
        """Store a job: `{"deduplicated", "job"}`.

        `object_type`, `object_id` and `action` name the work. `run_at` is a text or a `datetime`, with zone. `priority`
        decides among jobs that are due at the same time; with `Policy(pull_order="weighted")` it gives a head start, so
        that it counts in a backlog, too. `unique="waiting"` stores nothing while a job for the same work is queued or
        running, and returns that one.
        """
        return _granted(self.calls.enqueue(members, self.caller))

    def enqueue_batch(self, jobs: Sequence[Mapping[str, Json]], *, atomic: bool = False) -> dict[str, Any]:
        return _granted(self.calls.enqueue_batch({"jobs": list(jobs), "atomic": atomic}, self.caller))

    def pull(self, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.pull(members, self.caller))

    def ack(self, job_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.ack(job_id, members, self.caller))

    def ack_batch(self, acks: Sequence[Mapping[str, Json]]) -> dict[str, Any]:
        return _granted(self.calls.ack_batch({"acks": list(acks)}, self.caller))

    def fail(self, job_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.fail(job_id, members, self.caller))

    def renew(self, job_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.renew(job_id, members, self.caller))

    def release(self, job_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.release(job_id, members, self.caller))

    def cancel(self, job_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.cancel(job_id, members, self.caller))

    def requeue(self, job_id: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.requeue(job_id, members, self.caller))

    def cancel_batch(self, **members: Members) -> dict[str, Any]:
        """One step of a cancellation by `filter`; `pendula.jobs.cancel_all` takes all steps."""
        return _granted(self.calls.cancel_batch(members, self.caller))

    def requeue_batch(self, **members: Members) -> dict[str, Any]:
        """One step of a requeue by `filter`; `pendula.jobs.requeue_all` takes all steps."""
        return _granted(self.calls.requeue_batch(members, self.caller))

    def show(self, job_id: str) -> dict[str, Any]:
        return _granted(queries.show(self.calls.store, job_id))

    def why(self, job_id: str) -> dict[str, Any]:
        """Why the job has not run, or how it ended: `sentence`, `reason`, `facts`."""
        return _granted(why.why(self.calls.store, self.calls.policy, self.calls.clock(), job_id))

    def workers(self) -> dict[str, Any]:
        """Workers with a heartbeat, the latest first."""
        return heartbeats.listed(self.calls.store, self.calls.clock()).body

    def alerts(self, **query: Members) -> dict[str, Any]:
        """Alerts, the newest first: `{"alerts", "next_cursor"}`. `limit` is 1 to 1000, `cursor` the end of a page.

        `delivered_at` is null until every sink has taken the alert.
        """
        return _granted(queries.alerts(self.calls.store, query))

    def plans(self) -> dict[str, Any]:
        """All time plans, by name."""
        return plans.listed(self.calls.store, self.calls.clock()).body

    def put_plan(self, name: str, **members: Members) -> dict[str, Any]:
        """Create or change a recurring job: `cron`, `zone`, `object_type`, `object_id`, `action` and so on."""
        return _granted(self.calls.put_plan(name, members, self.caller))

    def pause_plan(self, name: str, **members: Members) -> dict[str, Any]:
        """Stop occurrences until `resume_plan`; the queued one is cancelled."""
        return _granted(self.calls.pause_plan(name, members, self.caller))

    def resume_plan(self, name: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.resume_plan(name, members, self.caller))

    def run_now(self, name: str, **members: Members) -> dict[str, Any]:
        """Enqueue one extra job of the plan now."""
        return _granted(self.calls.run_now(name, members, self.caller))

    def remove_plan(self, name: str, **members: Members) -> dict[str, Any]:
        return _granted(self.calls.remove_plan(name, members, self.caller))

    def set_time(self, **members: Members) -> dict[str, Any]:
        """Declare the clock of this machine right: `reason=` is required.

        The store's time follows it, also backwards; leases and delays that a wrong clock wrote count from now.
        """
        return _granted(self.calls.set_time(members, self.caller))

    def list(self, **query: Members) -> dict[str, Any]:
        """Jobs, the newest first: `{"jobs", "next_cursor"}`.

        Filters are `status`, `object_type`, `object_id`, `action`, `queue`, `correlation_id`, `error_code`,
        `created_after` and `created_before`; `limit` is 1 to 1000, `cursor` the end of the last page.
        """
        return _granted(queries.listed(self.calls.store, self.calls.policy, query))

    def count(self, **query: Members) -> dict[str, Any]:
        """How many jobs match the filters of `list`: `{"count"}`."""
        return _granted(queries.counted(self.calls.store, self.calls.policy, query))

    def history(self, job_id: str) -> dict[str, Any]:
        return _granted(queries.history(self.calls.store, job_id))

    def audit(self, **query: Members) -> dict[str, Any]:
        return _granted(queries.trail(self.calls.store, self.calls.policy, query))

    def past(self, **query: Members) -> dict[str, Any]:
        """The queue and the governed objects after the event `at`, one of the last 10 000; without one, now."""
        return _granted(moments.past(self.calls.store, query))

    def object(self, object_type: str, object_id: str) -> dict[str, Any]:
        return _granted(queries.shown_object(self.calls.store, object_type, object_id))

    def metrics(self, **query: Members) -> dict[str, Any]:
        window = queries.window_of(query)
        if isinstance(window, Refused):
            raise JobRefused(window)
        return queries.metrics(self.calls.store, self.calls.policy, self.calls.clock(), window)


def hold_clock(store: SqliteStore, policy: Policy, clock: Callable[[], int]) -> None:
    """Refuse this machine's clock where it jumped ahead; without a boot id, do nothing."""
    if (boot := boot_id()) is not None:
        store.hold_clock(MachineTime(clock, steady_us, boot, policy.max_clock_step_sec * SECOND))


def micros(seconds: int | timedelta) -> int:
    """Seconds or a `timedelta`, in microseconds."""
    return seconds // timedelta(microseconds=1) if isinstance(seconds, timedelta) else seconds * SECOND


def _granted(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Reply):
        return answer.body
    raise JobRefused(answer)


def _with_words(policy: Policy, object_types: Iterable[str], actions: Iterable[str]) -> Policy:
    if not object_types and not actions:
        return policy
    # Imported only when needed, since it is slow.
    from pendula.jobs.settings_file import with_words

    return with_words(policy, object_types, actions)
