"""What every engine is: one state machine, commands in, outcomes out, a reason for everything.

One driver, one journal, one replay, one stream and one contract suite serve every engine that follows this protocol.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

from msgspec import Struct

from pendula.kernel.canonical import Json

C = TypeVar("C", contravariant=True)
E = TypeVar("E")


class Refusal(Struct, frozen=True):
    """A rejected command; a value, never an exception. The engine's state bytes are unchanged.

    It has no text: `Engine.sentence` renders one from code and facts where it is shown.
    """

    code: str
    facts: dict[str, Json] = {}


class Reason(Struct, frozen=True):
    """Why something waits, was refused, picked or stopped."""

    code: str
    sentence: str
    facts: dict[str, Json] = {}
    because: tuple["Reason", ...] = ()


class Outcome(Struct, Generic[E], frozen=True):
    """All that one command did. `answer` goes to the caller; `events` are streamed."""

    events: tuple[E, ...] = ()
    answer: Json = None
    refusal: Refusal | None = None


class Outside(Protocol):
    """What user code or another system answers while a command is applied.

    Live: asked once, the answer stored in the command's record. Replay: the stored answer is handed out.
    """

    def ask(self, name: str, question: Json) -> Json: ...


@runtime_checkable
class Engine(Protocol[C, E]):
    """One state machine: single-threaded, no clock, no I/O, no randomness but its seed.

    `commands` and `events` are the tagged unions of frozen structs that C and E stand for; journals are decoded with
    them. Time is a command (`Advance(to)`), never read. A batch is one command: applied, journalled and acknowledged
    whole. An exception out of `apply` is a defect: the driver stops the engine, and it is rebuilt from its journal.
    """

    scheduler: ClassVar[str]
    decisions: ClassVar[int]
    time_unit: ClassVar[str]
    commands: ClassVar[Any]
    events: ClassVar[Any]
    outside: Outside

    @classmethod
    def create(cls, config: Json) -> Self:
        """A fresh engine; `config` holds the seed."""
        ...

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        """The engine that gave `state`; a bad state is refused with `InputRefused` before anything exists."""
        ...

    def state(self) -> bytes:
        """Canonical JSON of everything that matters; survives `from_state` unchanged."""
        ...

    def apply(self, command: C) -> Outcome[E]: ...

    def now(self) -> int: ...

    def next_due(self) -> int | None:
        """The earliest `to` at which `Advance` would do something."""
        ...

    def why(self, question: Json) -> Reason:
        """Read-only: `state()` is the same after it."""
        ...

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        """The sentence for a refusal. It appears in no journal, state or digest, so rewording it changes no outcome."""
        ...

    def broken(self) -> Iterable[str]:
        """Invariants that do not hold, by name; empty when all is well."""
        ...
