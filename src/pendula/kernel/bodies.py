"""The bodies of journal records: inputs, outcomes and snapshots, to canonical bytes and back.

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
    """An answer from outside to a question of the engine."""

    name: str
    question: Json
    answer: Json


class Meta(Struct, frozen=True):
    """Caller, wall-clock time and request id of an input. No decision uses them."""

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
    """An outcome as canonical bytes; events are separate because they are streamed one by one."""

    answer: bytes
    events: tuple[bytes, ...]
    refusal: bytes

    def whole(self) -> bytes:
        return b'{"answer":%b,"events":[%b],"refusal":%b}' % (self.answer, b",".join(self.events), self.refusal)

    def digest(self) -> str:
        return sha256(self.whole()).hexdigest()

    def body(self, of: int, *, keep_events: bool = True) -> bytes:
        """The body of the outcome record. Without events, which a replay computes again, the digest represents them."""
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
    """The recorded outcome as a value, to show a difference."""
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
    """Decodes the commands of one engine class; raises `msgspec.DecodeError` for anything else."""

    def __init__(self, engine: type[Engine[C, Any]]) -> None:
        super().__init__(engine.commands)


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
