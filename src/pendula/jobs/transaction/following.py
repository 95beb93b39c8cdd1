"""The job that comes next is made."""

from msgspec.structs import replace

from pendula.jobs import decide
from pendula.jobs.model import TERMINAL, Actor, Refused
from pendula.jobs.requests import Enqueue
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.enqueue import key_hash, store_all

FOLLOWUP = "followup:"  # how the key of a follow-up begins where the derived one was taken


def enqueue_next(tx: Writer, follow: Enqueue, after: str, actor: Actor, now: int) -> str | None:
    """The id of the job that comes next; `after` is the key of what it follows."""
    assert follow.run_at is not None
    [stored] = store_all(tx, [follow], actor, now)
    if isinstance(stored, Refused) or stored[0].status in TERMINAL:
        # Other work has the key, or work that is over. One of its own, or the object would be forgotten.
        derived = decide.derived_key(follow, follow.run_at)
        own = f"{FOLLOWUP}{key_hash(f'{after} {derived}').hex()}"
        [stored] = store_all(tx, [replace(follow, idempotency_key=own)], actor, now)
    return None if isinstance(stored, Refused) else stored[0].job_id
