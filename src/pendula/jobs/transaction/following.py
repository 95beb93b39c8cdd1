"""The follow-up job of an object."""

from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.messages import Enqueue
from pendula.jobs.model import TERMINAL, Actor, Refused
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.enqueue import key_hash, store_all

FOLLOWUP = "followup:"  # prefix of the key of a follow-up whose derived key is taken


def enqueue_next(tx: Writer, follow: Enqueue, after: str, actor: Actor, now: int) -> str | None:
    """Enqueue the follow-up and return its id; `after` is the key of the job or change it follows."""
    assert follow.run_at is not None
    [stored] = store_all(tx, [follow], actor, now)
    if isinstance(stored, Refused) or stored[0].status in TERMINAL:
        # Other or finished work has the key. Use another key, or the object would be left without a job.
        derived = decide.derived_key(follow, follow.run_at)
        own = f"{FOLLOWUP}{key_hash(f'{after} {derived}').hex()}"
        [stored] = store_all(tx, [replace(follow, idempotency_key=own)], actor, now)
    return None if isinstance(stored, Refused) else stored[0].job_id
