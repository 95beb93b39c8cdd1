"""`Calls`, the one door to a store: every call that changes something, each in a transaction of its own.

What a call does within its transaction is in the module named after it; here are the clock, the store and the waiting.
"""

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import TypeVar

from msgspec.structs import replace

from pendula.jobs.background import Bell
from pendula.jobs.calls import finish, operate, plans, pull, set_time, signs
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

    The attribute `clock` is the store's time: that of the given clock, never before the latest time stored. It is asked
    within the transaction: waiting for the file must not eat into a lease.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        clock: Callable[[], int],
        tokens: Callable[[], str] = lambda: "lt_" + token_hex(16),
    ) -> None:
        self._machine = clock
        self.store = store
        self.policy = policy
        self.clock: Callable[[], int] = lambda: store.now(clock)
        self._tokens = tokens
        self._writes = Writes()
        self._found: Pull | None = None  # what was asked when the last pull found something

    # Jobs come in

    def enqueue(self, body: Body, caller: Caller = LOCAL) -> Answer:
        request = read_enqueue(body, self.policy, self.clock())
        if isinstance(request, Faults):
            return request.refusal()
        found = self._write(lambda tx: self.store_in(tx, request, caller.actor), caller)
        return found if isinstance(found, Refused) else enqueue.stored_reply(*found)

    def enqueue_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Many at once: each entry has its own answer; with `atomic` one fault spoils them all."""
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
        """Enqueue within somebody's transaction, at the time it goes by."""
        return enqueue.store_all(tx, [request], actor, self.clock() if now is None else now)[0]

    # Jobs go out

    def pull(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Due jobs for a worker; with `wait_ms`, as soon as there is one."""
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
        """What is due now. A transaction takes back only so many leases; there are as many as it needs."""
        if request != self._found and not self.anything_to_pull(request):
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
        # Who found something soon asks again, and needs no look before it.
        self._found = request if step.jobs else None
        if reclaimed:
            self._writes.tell()
        return replace(step, reclaimed=reclaimed)

    def anything_to_pull(self, request: Pull) -> bool:
        """Whether a pull would find something; takes no lock of the writers."""
        return self.store.read(lambda look: self._look(look, request))

    def _look(self, look: Reader, request: Pull) -> bool:
        look.catch_up()
        now = self.clock()
        due_by = now if request.now is None else request.now
        # Those aside count where this policy does not keep them there.
        kept_aside = self.policy.one_running_per_object or not look.anything_aside(needlessly=True)
        return not kept_aside or look.anything_to_pull(due_by, now, request)

    def reclaim(self, wanted: Callable[[], bool] = lambda: True) -> int:
        """Put back what expired, outside of any pull, in small steps; how many. Each step is asked whether to go on."""
        reclaimed = 0
        while wanted() and self.store.read(lambda look: look.anything_expired(self.clock())):
            step = self._write(lambda tx: pull.reclaim(tx, self.policy, self.clock()), Caller(SYSTEM))
            reclaimed += step
            if step < pull.RECLAIM_MOST:
                break
        return reclaimed

    # Deliveries end

    def ack(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: finish.ack(tx, job_id, body, caller.actor, self.policy, self.clock()), caller)

    def ack_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Many at once, each with its own answer."""
        if wrong := finish.ack_batch_faults(body):
            return wrong
        entries = body["acks"]
        results = self._write(lambda tx: finish.ack_all(tx, entries, caller.actor, self.policy, self.clock()), caller)
        return Reply(200, {"results": results})

    def fail(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: finish.fail(tx, job_id, body, caller.actor, self.policy, self.clock()), caller)

    # The other calls on one job

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

    # Calls on many jobs, a step at a time

    def cancel_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Cancel the newest jobs that fit a filter, at most `limit`; `next_cursor` leads to the next step."""
        step = read_step(body, self.policy, CANCELLABLE, self.clock())
        if isinstance(step, Refused):
            return step
        return self._write(lambda tx: operate.cancel_all(tx, step, caller.actor, self.policy, self.clock()), caller)

    def requeue_batch(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Requeue the newest jobs that fit a filter, at most `limit`; `next_cursor` leads to the next step."""
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
        """What the upkeep of plans does, in one transaction at its time."""
        return self._write(lambda tx: work(tx, self.clock()), Caller(SYSTEM))

    def set_time(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """A person says that the clock of this process is right: the store's time follows it, also back."""
        actor = caller.actor

        def work(tx: Writer) -> Answer:
            right = self._machine()
            return set_time.set_time(tx, body, self.policy, actor, right, max(right, tx.latest_time()))

        return self._write(work, caller)

    # Workers

    def signs_of_life(self, rows: Sequence[WorkerRow]) -> None:
        """Workers tell of themselves; nobody who waits for a job is woken by it."""
        self.store.write(lambda tx: signs.told(tx, rows))

    # Governed objects

    def change(self, work: Callable[[Writer, int], T], caller: Caller) -> T:
        """Something that belongs into one transaction, at its time."""
        return self._write(lambda tx: work(tx, self.clock()), caller)

    # Inside

    def _write(self, work: Callable[[Writer], T], caller: Caller) -> T:
        result = self.store.write(work, metadata=caller.metadata)
        self._writes.tell()
        return result
