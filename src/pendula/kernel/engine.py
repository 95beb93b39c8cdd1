"""The engine protocol: one state machine, commands in, outcomes out, a reason for everything.

Driver, journal, replay, event stream and the contract suite work with every engine that follows it.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

from msgspec import Struct

from pendula.kernel.canonical import Json

C = TypeVar("C", contravariant=True)
E = TypeVar("E")


class Refusal(Struct, frozen=True):
    """A rejected command; a value, never an exception. The engine's state bytes are unchanged.

    It has no text: `Engine.sentence` renders one from code and facts for display.
    """

    code: str
    facts: dict[str, Json] = {}


class Reason(Struct, frozen=True):
    """Why something waits, or was refused, picked or stopped."""

    code: str
    sentence: str
    facts: dict[str, Json] = {}
    because: tuple["Reason", ...] = ()


class Outcome(Struct, Generic[E], frozen=True):
    """The result of one command. `answer` goes to the caller; `events` are streamed."""

    events: tuple[E, ...] = ()
    answer: Json = None
    refusal: Refusal | None = None


class Outside(Protocol):
    """User code or another system that the engine asks while it applies a command.

    Live, it is asked once and the answer is stored in the command's record. On replay the stored answer is returned.
    """

    def ask(self, name: str, question: Json) -> Json: ...


@runtime_checkable
class Engine(Protocol[C, E]):
    """One state machine: single-threaded, no clock, no I/O, no randomness except its seed.

    `commands` and `events` are the tagged unions of frozen structs for C and E; journals are decoded with them. Time is
    a command (`Advance(to)`), never read from a clock. A batch is one command: applied, journalled and acknowledged
    whole. An exception out of `apply` is a bug: the driver discards the engine and rebuilds it from its journal.
    """

    scheduler: ClassVar[str]
    decisions: ClassVar[int]
    time_unit: ClassVar[str]
    commands: ClassVar[Any]
    events: ClassVar[Any]
    outside: Outside

    @classmethod
    def create(cls, config: Json) -> Self:
        """A fresh engine; `config` includes the seed."""
        ...

    @classmethod
    def from_state(cls, config: Json, state: bytes) -> Self:
        """The engine with this `state`; raises `InputRefused` for an invalid one."""
        ...

    def state(self) -> bytes:
        """The whole state as canonical JSON; `from_state` restores it unchanged."""
        ...

    def apply(self, command: C) -> Outcome[E]: ...

    def now(self) -> int: ...

    def next_due(self) -> int | None:
        """The earliest `to` at which `Advance` would do something."""
        ...

    def why(self, question: Json) -> Reason:
        """Answer a question; does not change the state."""
        ...

    @staticmethod
    def sentence(code: str, facts: Mapping[str, Json]) -> str:
        """The sentence for a refusal. Journals, states and digests do not contain it: rewording changes no outcome."""
        ...

    def broken(self) -> Iterable[str]:
        """The names of violated invariants; normally empty."""
        ...
