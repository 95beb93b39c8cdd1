"""`Calls`, the one door to a store: every call that changes something, each in a transaction of its own.

What a call does within its transaction is in the module named after it; here are the clock, the store and the waiting.
"""

from collections.abc import Callable, Sequence
from secrets import token_hex
from typing import TypeVar

from pendula.jobs.calls import enqueue, finish, operate, plans, pull, signs
from pendula.jobs.calls.enqueue import Rejected, Stored
from pendula.jobs.calls.pull import Pulled, Writes
from pendula.jobs.calls.replies import LOCAL, Answer, Body, Caller, Reply
from pendula.jobs.model import SYSTEM, Actor, Policy, Refused
from pendula.jobs.request_reading import Faults
from pendula.jobs.requests import Enqueue, Pull, read_cancel, read_enqueue, read_pull, read_requeue
from pendula.jobs.store.protocol import Store, WorkerRow, Writer

T = TypeVar("T")


class Calls:
    """The scheduler over one store. `clock` gives microseconds since 1970 and never goes back.

    The clock is read within the transaction: waiting for the file must not eat into a lease.
    """

    def __init__(
        self,
        store: Store,
        policy: Policy,
        clock: Callable[[], int],
        tokens: Callable[[], str] = lambda: "lt_" + token_hex(16),
    ) -> None:
        self.store = store
        self.policy = policy
        self.clock = clock
        self._tokens = tokens
        self._writes = Writes()

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

    def store_in(self, tx: Writer, request: Enqueue, actor: Actor, now: int | None = None) -> Stored:
        """Enqueue within somebody's transaction, at the time it goes by."""
        return enqueue.store_all(tx, [request], actor, self.clock() if now is None else now)[0]

    # Jobs go out

    def pull(self, body: Body, caller: Caller = LOCAL) -> Answer:
        """Due jobs for a worker; with `wait_ms`, as soon as there is one."""
        now = self.clock()
        request = read_pull(body, self.policy, now)
        if isinstance(request, Faults):
            return request.refusal()
        until = now + request.wait_ms * 1000
        while True:
            seen = self._writes.count
            pulled = self._pull(request, caller)
            now = self.clock()
            if pulled.jobs or pulled.reclaimed or now >= until:
                return pulled.reply()
            coming = self.store.read(lambda look: look.next_time())
            self._writes.wait(seen, pull.seconds_to_wait(request, coming, now, until))

    def _pull(self, request: Pull, caller: Caller) -> Pulled:
        seen = self.clock()
        if not self.store.read(lambda look: look.anything_to_pull(request.now or seen, seen, request)):
            return Pulled(seen if request.now is None else request.now, [], 0)
        pulled = self.store.write(
            lambda tx: pull.give_due(tx, request, self.policy, self.clock(), self._tokens), metadata=caller.metadata
        )
        if pulled.reclaimed:
            self._writes.tell()
        return pulled

    def reclaim(self) -> int:
        """Put back what expired, outside of any pull."""
        now = self.clock()
        if not self.store.read(lambda look: look.anything_expired(now)):
            return 0
        return self._write(lambda tx: pull.reclaim(tx, self.policy, now), Caller(SYSTEM))

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
        return self._write(lambda tx: operate.release(tx, job_id, body, caller.actor, self.clock()), caller)

    def cancel(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        reason = read_cancel(body)
        return self._write(lambda tx: operate.cancel(tx, job_id, reason, caller.actor, self.clock()), caller)

    def requeue(self, job_id: str, body: Body, caller: Caller = LOCAL) -> Answer:
        request = read_requeue(body, self.clock())
        return self._write(lambda tx: operate.requeue(tx, job_id, request, caller.actor, self.clock()), caller)

    # Time plans

    def put_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.put(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def pause_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.pause(tx, name, body, caller.actor, self.clock()), caller)

    def resume_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.resume(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def run_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.run_now(tx, name, body, self.policy, caller.actor, self.clock()), caller)

    def remove_plan(self, name: str, body: Body, caller: Caller = LOCAL) -> Answer:
        return self._write(lambda tx: plans.remove(tx, name, body, caller.actor, self.clock()), caller)

    def change_plans(self, work: Callable[[Writer, int], T]) -> T:
        """What the upkeep of plans does, in one transaction at its time."""
        return self._write(lambda tx: work(tx, self.clock()), Caller(SYSTEM))

    # Workers

    def signs_of_life(self, rows: Sequence[WorkerRow]) -> None:
        """Workers tell of themselves; nobody who waits for a job is woken by it."""
        self.store.write(lambda tx: signs.told(tx, rows))

    # Inside

    def _write(self, work: Callable[[Writer], T], caller: Caller) -> T:
        result = self.store.write(work, metadata=caller.metadata)
        self._writes.tell()
        return result
