"""`Calls`: every call that changes a store, each in its own transaction.

The module named after a call has its transaction; here are the clock, the store and the waiting.
"""

from collections.abc import Callable, Sequence
from os import urandom
from typing import TypeVar

from msgspec.structs import replace

from pendula.jobs.background import Bell
from pendula.jobs.calls import finish, heartbeats, operate, plans, pull, set_time
from pendula.jobs.calls.filters import CANCELLABLE, REVIVABLE, read_step
from pendula.jobs.calls.pull import Pulled, Writes
from pendula.jobs.model import SYSTEM, Actor, Policy, Refused
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import Enqueue, Pull, read_enqueue, read_pull, read_reason, read_requeue
from pendula.jobs.store.protocol import EnqueueWriter, Reader, Store, WorkerRow, Writer
from pendula.jobs.transaction import enqueue
from pendula.jobs.transaction.enqueue import Rejected, Stored
from pendula.jobs.transaction.replies import LOCAL, Answer, Body, Caller, Reply

T = TypeVar("T")


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

    def enqueue(self, body: Body, caller: Caller = LOCAL) -> Answer:
        request = read_enqueue(body, self.policy, self.clock())
        if isinstance(request, Faults):
            return request.refusal()
        stored = self._write(lambda tx: self.store_in(tx, request, caller.actor), caller)
        return stored if isinstance(stored, Refused) else enqueue.stored_reply(*stored)

    def enqueue_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Each entry has its own result; with `atomic` one fault refuses the whole batch."""
        batch = enqueue.read_batch(body, self.policy, self.clock())
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
        return enqueue.store_all(tx, [request], actor, self.clock() if now is None else now)[0]

    # Pull

    def pull(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Deliver due jobs; with `wait_ms`, wait for one."""
        self.store.check_may_write()
        now = self.clock()
        request = read_pull(body, self.policy, now)
        if isinstance(request, Faults):
            return request.refusal()
        until = now + request.wait_ms * 1000
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

    def ack(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: finish.ack(tx, job_id, body, caller.actor, self.policy, self.clock()), caller)

    def ack_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Each entry has its own result."""
        if wrong := finish.ack_batch_faults(body):
            return wrong
        entries = body["acks"]
        results = self._write(lambda tx: finish.ack_all(tx, entries, caller.actor, self.policy, self.clock()), caller)
        return Reply(200, {"results": results})

    def fail(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: finish.fail(tx, job_id, body, caller.actor, self.policy, self.clock()), caller)

    # Renew, release, cancel, requeue

    def renew(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: operate.renew(tx, job_id, body, self.policy, self.clock()), caller)

    def release(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(
            lambda tx: operate.release(tx, job_id, body, caller.actor, self.policy, self.clock()), caller
        )

    def cancel(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        reason = read_reason(body)
        return self._write(
            lambda tx: operate.cancel(tx, job_id, reason, caller.actor, self.policy, self.clock()), caller
        )

    def requeue(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        request = read_requeue(body, self.clock())
        return self._write(
            lambda tx: operate.requeue(tx, job_id, request, caller.actor, self.policy, self.clock()), caller
        )

    # Batches by filter, a step at a time

    def cancel_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Cancel the newest jobs that match a filter, at most `limit`; `next_cursor` leads to the next step."""
        step = read_step(body, self.policy, CANCELLABLE, self.clock())
        if isinstance(step, Refused):
            return step
        return self._write(lambda tx: operate.cancel_all(tx, step, caller.actor, self.policy, self.clock()), caller)

    def requeue_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Requeue the newest jobs that match a filter, at most `limit`; `next_cursor` leads to the next step."""
        step = read_step(body, self.policy, REVIVABLE, self.clock())
        if isinstance(step, Refused):
            return step
        return self._write(lambda tx: operate.requeue_all(tx, step, caller.actor, self.policy, self.clock()), caller)

    # Time plans

    def put_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.put(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def pause_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.pause(tx, name, body, caller.actor, self.clock()), caller)

    def resume_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.resume(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def run_now(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.run_now(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def remove_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.remove(tx, name, body, caller.actor, self.clock()), caller)

    def change_plans(self, work: Callable[[Writer, int], T]) -> T:
        """Run maintenance of plans in one transaction, with its time."""
        return self._write(lambda tx: work(tx, self.clock()), Caller(SYSTEM))

    def set_time(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Accept the clock of this process as right: the store's time follows it, also backwards."""
        actor = caller.actor

        def work(tx: Writer) -> Answer:
            right = self._machine()
            return set_time.set_time(tx, body, self.policy, actor, right, max(right, tx.latest_time()))

        return self._write(work, caller)

    # Workers

    def record_heartbeats(self, rows: Sequence[WorkerRow]) -> None:
        """Store heartbeats; waiting pulls are not woken by them."""
        self.store.write(lambda tx: heartbeats.record(tx, rows))

    # Governed objects

    def change(self, work: Callable[[Writer, int], T], caller: Caller) -> T:
        """Run `work` in one transaction, with its time."""
        return self._write(lambda tx: work(tx, self.clock()), caller)

    # Inside

    def _write(self, work: Callable[[Writer], T], caller: Caller) -> T:
        result = self.store.write(work, metadata=caller.metadata)
        self._writes.notify()
        return result
