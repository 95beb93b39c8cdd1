"""What stands inside the records of a journal: inputs, outcomes and snapshots, as canonical bytes and back.

input     {"answers": [{"answer", "name", "question"}], "command", "meta": {"at", "by", "request_id"}}
outcome   {"answer", "count", "digest", "events", "of", "refusal"}; the digest covers answer, events and refusal
snapshot  {"decisions", "state"}
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from pendula.kernel.canonical import Json, Reader, decode, encode
from pendula.kernel.engine import Engine, Outcome
from pendula.kernel.errors import PendulaError

C = TypeVar("C")


class Answer(Struct, frozen=True):
    """What the outside said to a question of the engine."""

    name: str
    question: Json
    answer: Json


class Meta(Struct, frozen=True):
    """Who asked, when by the wall clock, under which request. Nothing decides by it."""

    by: str
    at: str | None = None
    request_id: str | None = None


class InputBody(Struct, frozen=True):
    answers: Raw
    command: Raw
    meta: Meta

    def stored_answers(self) -> tuple[Answer, ...]:
        return _read_answers(self.answers)


class OutcomeBody(Struct, frozen=True):
    count: int
    digest: str
    of: int
    answer: Raw = Raw(b"null")
    events: Raw = Raw()  # empty when the events were not kept
    refusal: Raw = Raw(b"null")


class SnapshotBody(Struct, frozen=True):
    decisions: int
    state: Raw


class OutcomeBytes(NamedTuple):
    """An outcome in canonical bytes; each event apart, because they are streamed one by one."""

    answer: bytes
    events: tuple[bytes, ...]
    refusal: bytes

    def whole(self) -> bytes:
        return b'{"answer":%b,"events":[%b],"refusal":%b}' % (self.answer, b",".join(self.events), self.refusal)

    def digest(self) -> str:
        return sha256(self.whole()).hexdigest()

    def body(self, of: int, *, keep_events: bool = True) -> bytes:
        """The record of the outcome; without its events, which a replay makes again, their digest stands for them."""
        events = b'"events":[%b],' % b",".join(self.events) if keep_events else b""
        return b'{"answer":%b,"count":%d,"digest":"%b",%b"of":%d,"refusal":%b}' % (
            self.answer,
            len(self.events),
            self.digest().encode(),
            events,
            of,
            self.refusal,
        )


def outcome_bytes(outcome: Outcome[Any]) -> OutcomeBytes:
    return OutcomeBytes(
        b"null" if outcome.answer is None else encode(outcome.answer),
        tuple(map(encode, outcome.events)),
        b"null" if outcome.refusal is None else encode(outcome.refusal),
    )


def recorded_outcome(body: OutcomeBody) -> Json:
    """What a record says of an outcome, for people who compare."""
    if not bytes(body.events):
        return {"count": body.count, "digest": body.digest}
    return {
        "answer": decode(bytes(body.answer)),
        "events": decode(bytes(body.events)),
        "refusal": decode(bytes(body.refusal)),
    }


def input_body(command: bytes, answers: Sequence[Answer], meta: bytes) -> bytes:
    return b'{"answers":%b,"command":%b,"meta":%b}' % (encode(list(answers)) if answers else b"[]", command, meta)


def snapshot_body(decisions: int, state: bytes) -> bytes:
    return b'{"decisions":%d,"state":%b}' % (decisions, state)


read_input = msgspec.json.Decoder(InputBody).decode
read_outcome = msgspec.json.Decoder(OutcomeBody).decode
read_snapshot = msgspec.json.Decoder(SnapshotBody).decode


_read_answers: Reader[tuple[Answer, ...]] = Reader(tuple[Answer, ...])


class CommandReader(Reader[C]):
    """Decodes the commands of one kind of engine; raises `msgspec.DecodeError` for what is none."""

    def __init__(self, engine: type[Engine[C, Any]]) -> None:
        super().__init__(engine.commands)


class AnswersDiffer(PendulaError):
    """On replay the engine asked something else than it had asked live."""

    code = "answers_differ"


class NoAnswerSource(PendulaError):
    """An engine asked a question, and nobody was given who could answer."""

    code = "nobody_to_ask"


class NoOutside:
    """The outside of an engine that needs none."""

    def ask(self, name: str, question: Json) -> Json:
        raise NoAnswerSource(f"The engine asks {name!r}, and nobody is there to answer", name=name, question=question)


class Recorder:
    """Live: asks the real outside and keeps what it said."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.answers: list[Answer] = []

    def ask(self, name: str, question: Json) -> Json:
        # Through bytes and back, so that the engine sees live exactly what it will see on replay; and in copies of
        # its own, so that nothing it does to an answer changes what is kept.
        asked = encode(question)
        said = encode(self._real.ask(name, question))
        self.answers.append(Answer(name, decode(asked), decode(said)))
        return decode(said)


class Recorded:
    """Replay: hands out the stored answers, in order, to the same questions."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers = iter(answers)

    def ask(self, name: str, question: Json) -> Json:
        stored = next(self._answers, None)
        if stored is None or stored.name != name or encode(stored.question) != encode(question):
            raise AnswersDiffer(
                f"The engine asks {name!r}, the journal holds an answer to {stored.name if stored else 'nothing'!r}",
                asked={"name": name, "question": question},
                stored=None if stored is None else {"name": stored.name, "question": stored.question},
            )
        return stored.answer

    def unused(self) -> Answer | None:
        return next(self._answers, None)
