"""What governance decides about jobs, asked within the transaction of the call.

`pendula.governance` is a layer above this package, which never imports it. A queue without governed objects does not
load it: calls ask the store first whether there are any, and a transaction knows that without a query. A store that has
some loads it by its name in whichever process opens it; otherwise a process that forgets it could bypass the gates.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct

from pendula.jobs.audit import Row
from pendula.jobs.messages import Ack, Enqueue
from pendula.jobs.model import Actor, Finding, GovernanceSettings, Job, Policy, Refused, Vocabulary
from pendula.jobs.store.protocol import EnqueueWriter, Reader, Store, Writer
from pendula.kernel.canonical import Json

if TYPE_CHECKING:
    from pendula.documents import Members

LAYER = "pendula.governance.hooks"


class EndedJob(Struct, frozen=True):
    """The ended job and the id of its follow-up."""

    job: Job
    followup: str | None


class GovernedCalls(Protocol):
    """The calls of a worker on governed jobs, of a store in this process or of a server."""

    @property
    def begin(self) -> Callable[..., dict[str, Any]]: ...

    @property
    def finish(self) -> Callable[..., dict[str, Any]]: ...

    @property
    def settle(self) -> Callable[..., dict[str, Any]]: ...


class GovernedTrail(Protocol):
    """Governed objects as the audit trail has them, built event by event."""

    def read(self, row: Row, event: Any) -> None: ...

    def compare(self, look: Reader) -> Iterator[Finding]:
        """The differences between the trail and the store."""
        ...


class Hooks(Protocol):
    """Each function gets the open transaction and writes in it; nothing of it is stored unless the call succeeds."""

    def may_enqueue(self, tx: EnqueueWriter, request: Enqueue) -> Refused | None:
        """The refusal of a job that its object is closed to; asked only if some object is closed."""
        ...

    def may_deliver(self, tx: Writer, job: Job, fence: int, actor: Actor, policy: Policy, now: int) -> bool:
        """Whether a due job may be delivered with this fence; one that may not has ended or was postponed."""
        ...

    def may_finish(
        self, tx: Writer, job: Job, request: Ack, actor: Actor, policy: Policy, now: int
    ) -> EndedJob | Refused:
        """End the job of a governed object by an ack without a finding."""
        ...

    def on_end(self, tx: Writer, before: Job, after: Job, actor: Actor, policy: Policy, now: int) -> None:
        """The job of a governed object has failed for good."""
        ...

    def on_dead_letter(self, tx: Reader, job: Job) -> bool:
        """Whether a dead letter is about an object of high risk, which makes its alert critical."""
        ...

    def why_withheld(self, look: Reader, job: Job, policy: Policy, now: int) -> tuple[str, str] | None:
        """The outcome and the sentence, if a due job is withheld."""
        ...

    def past_places(self, look: Reader, before: Mapping[Any, Mapping[str, Json] | None]) -> list[Json]:
        """How many objects were in each place, given the members of later changed ones before their changes."""
        ...

    def forgotten(self, look: Reader, now: int) -> Iterator[Finding]:
        """Governed objects whose date has passed and for which no job waits or runs."""
        ...

    def trail(self) -> GovernedTrail: ...

    def check_learning(self, store: Store, policy: Policy, now: int) -> bool:
        """Store an alert if exploratory verifications have stopped; whether they have."""
        ...

    def read_settings(self, it: "Members", vocabulary: Vocabulary, folder: Path | None) -> GovernanceSettings | None:
        """The settings in a settings file; None for the defaults."""
        ...

    def object_types(self, policy: Policy) -> Collection[str]:
        """The object types that have a state machine."""
        ...

    def job_calls(self, client: object) -> GovernedCalls:
        """Raises `WrongUsage` if the client has no governed objects."""
        ...


def governance() -> Hooks:
    """The layer, loaded by the first call."""
    return cast(Hooks, import_module(LAYER))
