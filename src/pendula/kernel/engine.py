"""The engine protocol: one state machine, commands in, outcomes out, a reason for everything.

Driver, journal, replay, event stream and the contract suite work with every engine that follows it.

Journals, states and digests contain codes and facts; sentences are rendered for display. `Engine.sentence` renders the
sentence of a refusal; an event with a sentence computes it in a property `message`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, runtime_checkable

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json, Reader, decode, encode
from pendula.kernel.errors import PendulaError

C = TypeVar("C", contravariant=True)
Command = TypeVar("Command")
E = TypeVar("E")

# Raised while rendering a code or facts that this version does not know, as in a journal that was edited.
UNKNOWN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, msgspec.MsgspecError)


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


class CommandReader(Reader[Command]):
    """Decodes the commands of one engine class; raises `msgspec.DecodeError` for anything else."""

    def __init__(self, engine: type[Engine[Command, Any]]) -> None:
        super().__init__(engine.commands)


class Answer(Struct, frozen=True):
    """An answer from outside to a question of the engine."""

    name: str
    question: Json
    answer: Json


class AnswersDiffer(PendulaError):
    """On replay the engine asked a different question than it did live."""

    code = "answers_differ"


class NoAnswerSource(PendulaError):
    """An engine asked a question, but it has no outside to answer it."""

    code = "no_answer_source"


class NoOutside:
    """The outside of an engine that asks no questions."""

    def ask(self, name: str, question: Json) -> Json:
        raise NoAnswerSource(f"No handler answers the question {name!r}", name=name, question=question)


class Recorder:
    """Live: asks the real outside and records its answers."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.answers: list[Answer] = []

    def ask(self, name: str, question: Json) -> Json:
        # Through bytes and back, so that the engine sees live exactly what it will see on replay; separate copies, so
        # that the engine cannot change a recorded answer.
        encoded_question = encode(question)
        encoded_answer = encode(self._real.ask(name, question))
        self.answers.append(Answer(name, decode(encoded_question), decode(encoded_answer)))
        return decode(encoded_answer)


class Recorded:
    """Replay: returns the stored answers, in order, to the same questions."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = iter(answers)

    def ask(self, name: str, question: Json) -> Json:
        stored = next(self._answers, None)
        if stored is None or stored.name != name or encode(stored.question) != encode(question):
            raise AnswersDiffer(
                f"The engine asks {name!r}, the journal has an answer to {stored.name if stored else 'nothing'!r}",
                asked={"name": name, "question": question},
                stored=None if stored is None else {"name": stored.name, "question": stored.question},
            )
        return stored.answer

    def unused(self) -> Answer | None:
        return next(self._answers, None)


def refusal_sentence(engine: Engine[Any, Any] | type[Engine[Any, Any]], refusal: Refusal) -> str:
    return engine.sentence(refusal.code, refusal.facts)


def stored_sentence(render: Callable[[], str], code: str) -> str:
    """The sentence of a stored code; the code itself if it or its facts cannot be rendered."""
    try:
        return render()
    except UNKNOWN:
        return code


def shown_bytes(event: Any, data: bytes) -> bytes:
    """The canonical bytes of an event, with its sentence, if it has one, as the last member `message`."""
    if not isinstance(getattr(type(event), "message", None), property):
        return data
    separator = b"" if data == b"{}" else b","
    message = stored_sentence(lambda: str(event.message), str(getattr(event, "code", "unknown")))
    return b'%b%b"message":%b}' % (data[:-1], separator, encode(message))


def shown_stored(read: Callable[[bytes], Any], data: bytes) -> bytes:
    """Like `shown_bytes`, for an event of a journal; unchanged if this version cannot read it."""
    try:
        return shown_bytes(read(data), data)
    except UNKNOWN:
        return data
