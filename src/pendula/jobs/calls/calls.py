"""`Calls`: every call that changes a store, each in its own transaction.

The module named after a call has its transaction; here are the clock, the store and the waiting.
"""

from collections.abc import Callable, Sequence
from os import urandom
from typing import TypeVar

from msgspec.structs import replace

from pendula.jobs import messages, transaction
from pendula.jobs.background import Bell
from pendula.jobs.calls import finish, operate, plans, pull, queries
from pendula.jobs.calls import why as reasons
from pendula.jobs.calls.operate import step_of
from pendula.jobs.calls.pull import Pulled
from pendula.jobs.calls.queries import past
from pendula.jobs.messages import CancelBatch, Enqueue, Enqueued, Pull, Requeue, RequeueBatch, Stated
from pendula.jobs.model import SYSTEM, Actor, Policy, Refused
from pendula.jobs.request_reading import Faults, read
from pendula.jobs.store.protocol import EnqueueWriter, Reader, Store, WorkerRow, Writer
from pendula.jobs.transaction import LOCAL, Body, Caller, Rejected, Stored

T = TypeVar("T")


class Writes:
    """Wakes waiting pulls after a write of this process. Without a lock, which an interrupt could leave held."""

    def __init__(self) -> None:
        self._bells: dict[Bell, None] = {}

    def notify(self) -> None:
        for bell in tuple(self._bells):
            bell.ring()

    def join(self, bell: Bell) -> None:
        """Ring this bell at every further write."""
        self._bells[bell] = None

    def leave(self, bell: Bell) -> None:
        self._bells.pop(bell, None)


class Calls:
    """The scheduler over one store. `clock` gives microseconds since 1970.

    The attribute `clock` is the store's time: that of the given clock, never before the latest stored time. It is read
    within the transaction, so that waiting for the file does not shorten a lease.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        clock: Callable[[], int],
        tokens: Callable[[], str] = lambda: "lt_" + urandom(16).hex(),
    ) -> None:
        self._machine = clock
        self.store = store
        self.policy = policy
        self.clock: Callable[[], int] = lambda: store.now(clock)
        self._tokens = tokens
        self._writes = Writes()
        self._last_pull: Pull | None = None  # the request of the last pull, if it found jobs

    # Enqueue

    def enqueue(self, body: Body, caller: Caller = LOCAL) -> Enqueued | Refused:
        request = read(Enqueue, body, self.policy, self.clock())
        if isinstance(request, Faults):
            return request.refusal()
        stored = self._write(lambda tx: self.store_in(tx, request, caller.actor), caller)
        return stored if isinstance(stored, Refused) else transaction.stored_reply(*stored)

    def enqueue_batch(self, body: Body, caller: Caller = LOCAL) -> messages.BatchResults | Refused:
        """Each entry has its own result; with `atomic` one fault refuses the whole batch."""
        batch = transaction.read_batch(body, self.policy, self.clock())
        if isinstance(batch, Refused):
            return batch
        if not batch.good:
            return batch.refusal() if batch.atomic else batch.reply([])
        try:
            return batch.reply(self._write(lambda tx: batch.store(tx, caller.actor, self.clock()), caller))
        except Rejected as rejected:
            return batch.refusal(rejected.stored)

    def store_in(self, tx: EnqueueWriter, request: Enqueue, actor: Actor, now: int | None = None) -> Stored:
        """Enqueue within the transaction of the caller, at the time `now` of that transaction."""
        return transaction.store_all(tx, [request], actor, self.clock() if now is None else now)[0]

    # Pull

    def pull(self, body: Body, caller: Caller = LOCAL) -> messages.Pulled | Refused:
        """Deliver due jobs; with `wait_ms`, wait for one."""
        self.store.check_may_write()
        request = read(Pull, body, self.policy, self.clock())
        return request.refusal() if isinstance(request, Faults) else self.deliver(request, caller)

    def deliver(self, request: Pull, caller: Caller = LOCAL, *, waits: bool = True) -> messages.Pulled:
        """A pull that was read; it waits only if `waits`."""
        self.store.check_may_write()
        now = self.clock()
        until = now + (request.wait_ms * 1000 if waits else 0)
        bell = Bell()
        try:
            self._writes.join(bell)
            withheld: set[int] = set()
            while True:
                pulled = self._pull(request, caller, withheld)
                now = self.clock()
                if pulled.jobs or pulled.reclaimed or now >= until:
                    return pulled.reply()
                coming = self.store.read(lambda look: look.next_time())
                bell.wait(max(pull.seconds_to_wait(request, coming, now, until), pull.LEAST_SECONDS))
        finally:
            self._writes.leave(bell)

    def _pull(self, request: Pull, caller: Caller, withheld: set[int]) -> Pulled:
        """Deliver what is due now, in as many transactions as there are expired leases to return."""
        if request != self._last_pull and not self.anything_to_pull(request):
            return Pulled(self.clock() if request.now is None else request.now, [], 0)
        reclaimed = 0
        while True:
            step = self.store.write(
                lambda tx: pull.give_due(tx, request, self.policy, self.clock(), self._tokens, withheld),
                metadata=caller.metadata,
            )
            reclaimed += step.reclaimed
            if not step.cut_short:
                break
        # A worker that got jobs pulls again soon: the next pull skips the check without a lock.
        self._last_pull = request if step.jobs else None
        if reclaimed:
            self._writes.notify()
        return replace(step, reclaimed=reclaimed)

    def anything_to_pull(self, request: Pull) -> bool:
        """Whether a pull would find something; does not take the write lock."""
        return self.store.read(lambda look: self._look(look, request))

    def _look(self, look: Reader, request: Pull) -> bool:
        look.catch_up()
        now = self.clock()
        due_by = now if request.now is None else request.now
        # Jobs that are set aside count where this policy does not set them aside.
        kept_aside = self.policy.one_running_per_object or not look.anything_aside(needlessly=True)
        return not kept_aside or look.anything_to_pull(due_by, now, request)

    def reclaim(self, wanted: Callable[[], bool] = lambda: True) -> int:
        """Return expired leases outside a pull, in small steps while `wanted` is true; returns how many."""
        reclaimed = 0
        while wanted() and self.store.read(lambda look: look.anything_expired(self.clock())):
            step = self._write(lambda tx: pull.reclaim(tx, self.policy, self.clock()), Caller(SYSTEM))
            reclaimed += step
            if step < pull.RECLAIM_MOST:
                break
        return reclaimed

    # End of a delivery

    def ack(self, job_id: str, body: Body, caller: Caller = LOCAL) -> messages.Acked | Refused:
        return self._write(lambda tx: finish.ack(tx, job_id, body, caller.actor, self.policy, self.clock()), caller)

    def ack_batch(self, body: Body, caller: Caller = LOCAL) -> messages.AckResults | Refused:
        """Each entry has its own result."""
        if wrong := finish.ack_batch_faults(body):
            return wrong
        entries = body["acks"]
        return self._write(lambda tx: finish.ack_all(tx, entries, caller.actor, self.policy, self.clock()), caller)

    def fail(self, job_id: str, body: Body, caller: Caller = LOCAL) -> messages.Failed | Refused:
        return self._write(lambda tx: finish.fail(tx, job_id, body, caller.actor, self.policy, self.clock()), caller)

    # Renew, release, cancel, requeue

    def renew(self, job_id: str, body: Body, caller: Caller = LOCAL) -> messages.Renewed | Refused:
        return self._write(lambda tx: operate.renew(tx, job_id, body, self.policy, self.clock()), caller)

    def release(self, job_id: str, body: Body, caller: Caller = LOCAL) -> messages.OneJob | Refused:
        return self._write(
            lambda tx: operate.release(tx, job_id, body, caller.actor, self.policy, self.clock()), caller
        )

    def cancel(self, job_id: str, body: Body, caller: Caller = LOCAL) -> messages.OneJob | Refused:
        request = read(Stated, body, self.policy)
        return self._write(
            lambda tx: operate.cancel(tx, job_id, request, caller.actor, self.policy, self.clock()), caller
        )

    def requeue(self, job_id: str, body: Body, caller: Caller = LOCAL) -> messages.OneJob | Refused:
        request = read(Requeue, body, self.policy, self.clock())
        return self._write(
            lambda tx: operate.requeue(tx, job_id, request, caller.actor, self.policy, self.clock()), caller
        )

    # Batches by filter, a step at a time

    def cancel_batch(self, body: Body, caller: Caller = LOCAL) -> messages.Operated | Refused:
        """Cancel the newest jobs that match a filter, at most `limit`; `next_cursor` leads to the next step."""
        request = read(CancelBatch, body, self.policy, self.clock())
        if isinstance(request, Faults):
            return request.refusal()
        step = step_of(request)
        return self._write(lambda tx: operate.cancel_all(tx, step, caller.actor, self.policy, self.clock()), caller)

    def requeue_batch(self, body: Body, caller: Caller = LOCAL) -> messages.Operated | Refused:
        """Requeue the newest jobs that match a filter, at most `limit`; `next_cursor` leads to the next step."""
        request = read(RequeueBatch, body, self.policy, self.clock())
        if isinstance(request, Faults):
            return request.refusal()
        step = step_of(request)
        return self._write(lambda tx: operate.requeue_all(tx, step, caller.actor, self.policy, self.clock()), caller)

    # Time plans

    def put_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> messages.OnePlan | Refused:
        return self._write(lambda tx: plans.put(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def pause_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> messages.OnePlan | Refused:
        return self._write(lambda tx: plans.pause(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def resume_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> messages.OnePlan | Refused:
        return self._write(lambda tx: plans.resume(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def run_now(self, name: str, body: Body, caller: Caller = LOCAL) -> Enqueued | Refused:
        return self._write(lambda tx: plans.run_now(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def remove_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> messages.PlanRemoved | Refused:
        return self._write(lambda tx: plans.remove(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def change_plans(self, work: Callable[[Writer, int], T]) -> T:
        """Run maintenance of plans in one transaction, with its time."""
        return self._write(lambda tx: work(tx, self.clock()), Caller(SYSTEM))

    def set_time(self, body: Body, caller: Caller = LOCAL) -> messages.TimeSet | Refused:
        """Accept the clock of this process as right: the store's time follows it, also backwards."""
        actor = caller.actor

        def work(tx: Writer) -> messages.TimeSet | Refused:
            right = self._machine()
            return operate.set_time(tx, body, self.policy, actor, right, max(right, tx.latest_time()))

        return self._write(work, caller)

    def free_key(self, body: Body, caller: Caller = LOCAL) -> messages.Freed | Refused:
        """Let the key of a deleted job be used again."""
        return self.store.write(
            lambda tx: operate.free_key(tx, body, caller.actor, self.policy, self.clock()), metadata=caller.metadata
        )

    # Reading

    def show(self, job_id: str) -> messages.OneJob | Refused:
        return queries.show(self.store, job_id)

    def why(self, job_id: str) -> messages.Why | Refused:
        return reasons.why(self.store, self.policy, self.clock(), job_id)

    def history(self, job_id: str) -> messages.History | Refused:
        return queries.history(self.store, job_id)

    def list(self, query: Body) -> messages.JobList | Refused:
        return queries.listed(self.store, self.policy, query)

    def count(self, query: Body) -> messages.Counted | Refused:
        return queries.counted(self.store, self.policy, query)

    def audit(self, query: Body) -> messages.Trail | Refused:
        return queries.trail(self.store, self.policy, query)

    def alerts(self, query: Body) -> messages.Alerts | Refused:
        return queries.alerts(self.store, self.policy, query)

    def past(self, query: Body) -> messages.Past | Refused:
        return past(self.store, self.policy, query)

    def metrics(self, query: Body) -> messages.Metrics | Refused:
        window = queries.window_of(query, self.policy)
        if isinstance(window, Refused):
            return window
        return queries.metrics(self.store, self.policy, self.clock(), window)

    def object(self, object_type: str, object_id: str) -> messages.StoredObject | Refused:
        return queries.shown_object(self.store, object_type, object_id)

    def plans(self) -> messages.Plans:
        return plans.listed(self.store, self.clock())

    def workers(self) -> messages.Workers:
        return queries.workers(self.store, self.clock())

    # Workers

    def record_heartbeats(self, rows: Sequence[WorkerRow]) -> None:
        """Store heartbeats; waiting pulls are not woken by them."""
        self.store.write(lambda tx: queries.record_heartbeats(tx, rows))

    # Governed objects

    def change(self, work: Callable[[Writer, int], T], caller: Caller) -> T:
        """Run `work` in one transaction, with its time."""
        return self._write(lambda tx: work(tx, self.clock()), caller)

    # Inside

    def _write(self, work: Callable[[Writer], T], caller: Caller) -> T:
        result = self.store.write(work, metadata=caller.metadata)
        self._writes.notify()
        return result
