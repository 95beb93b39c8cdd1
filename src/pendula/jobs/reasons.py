"""Reasons as stored, a code and its facts, and the verdict of a verifier. `jobs.sentences` renders the sentence."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from pendula.kernel.canonical import Json

STATED = "stated"


class Reason(Struct, frozen=True, omit_defaults=True):
    """A code with its facts. The fact `because` is a further reason, in the same form."""

    code: str
    facts: Mapping[str, Any] = {}


def stated(text: str) -> Reason:
    """The text of a caller, a handler or a state machine, unchanged."""
    return Reason(STATED, {"text": text})


def reason_json(reason: Reason) -> dict[str, Json]:
    return {"code": reason.code, "facts": dict(reason.facts)}


def error_of(reason: Reason) -> str:
    """The reason inside an error: its code and facts, separated by colons; stated text unchanged."""
    if reason.code == STATED:
        return str(reason.facts["text"])
    return ": ".join((reason.code, *(_in_error(fact) for fact in reason.facts.values())))


def _in_error(fact: Any) -> str:
    return ",".join(map(str, fact)) if isinstance(fact, list | tuple) else str(fact)


class Unknown(StrEnum):
    """Why something is uncertain."""

    MULTIPATH = "multipath"
    OUT_OF_SCOPE = "out_of_scope"
    ONTIC_UNKNOWABLE = "ontic_unknowable"


class Verdict(Struct, frozen=True):
    """The finding of a verifier or a person; a reason in their own words is text."""

    finding: str
    reason: Reason | str
    evidence: tuple[str, ...] = ()
    unknown_type: Unknown | None = None

    @property
    def because(self) -> Reason:
        return stated(self.reason) if isinstance(self.reason, str) else self.reason
