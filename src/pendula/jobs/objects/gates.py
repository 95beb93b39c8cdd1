"""Gates: what each says of an object, which of them have to be asked, and what their words together mean for a job.

The strictest wins. A gate that nobody has set is not a gate that passes.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from pendula.jobs.objects.governed import Impact, Risk
from pendula.jobs.objects.reasons import Reason

PERSONA, RISK, COGNITION, SOCIAL = "persona_conflict_gate", "risk_gate", "cognition_gate", "social_gate"
VERDICTS = {
    PERSONA: ("pass", "block", "override"),
    RISK: ("pass", "limit", "block"),
    COGNITION: ("pass", "degrade", "block"),
    SOCIAL: ("pass", "block", "defer"),
}
REQUIRED = (PERSONA, RISK, COGNITION)
EVERYTHING = "*"  # the scope of a gate that is set for all objects


class Gate(Struct, frozen=True):
    """What one gate says; `override_by` is the user in whose name it passes, `version` rises with each change."""

    name: str
    scope: str
    verdict: str
    version: int
    set_at: int
    set_by: str
    reason: str
    override_by: str | None = None


class Passage(StrEnum):
    """What the gates together allow, the strictest last."""

    OPEN = "open"
    LOWERING_ONLY = "lowering_only"
    DEFERRED = "deferred"
    BLOCKED = "blocked"
    UNAVAILABLE = "unavailable"


_MEANS = {
    "pass": Passage.OPEN,
    "limit": Passage.LOWERING_ONLY,
    "degrade": Passage.LOWERING_ONLY,
    "defer": Passage.DEFERRED,
    "block": Passage.BLOCKED,
}
_STRICTNESS = {passage: rank for rank, passage in enumerate(Passage)}


class Reading(Struct, frozen=True):
    """The gates as one moment saw them: what they allow, which gate decided it, and every version that was read.

    `missing` are those that have to be asked and were never set.
    """

    passage: Passage
    decided_by: str | None
    gates: tuple[Gate, ...]
    missing: tuple[str, ...] = ()

    @property
    def versions(self) -> dict[str, int]:
        return {f"{gate.name} {gate.scope}": gate.version for gate in self.gates}

    @property
    def verdicts(self) -> dict[str, str]:
        """The strictest word of each gate."""
        strictest: dict[str, Gate] = {}
        for gate in self.gates:
            there = strictest.get(gate.name)
            if there is None or _STRICTNESS[_passage(gate)] > _STRICTNESS[_passage(there)]:
                strictest[gate.name] = gate
        return {name: strictest[name].verdict for name in sorted(strictest)}


NOT_ASKED = Reading(Passage.OPEN, None, ())


def is_high_risk(risk: Risk, impact: Impact) -> bool:
    return risk is Risk.HIGH or impact is Impact.CRITICAL


def risk_that_counts(risk: Risk, impact: Impact) -> Risk:
    """A critical impact makes the risk high, whatever its tier."""
    return Risk.HIGH if is_high_risk(risk, impact) else risk


def read(gates: Iterable[Gate], required: Sequence[str]) -> Reading:
    """What these gates mean together. Of equals the first by name is said to have decided."""
    found = tuple(sorted(gates, key=lambda gate: (gate.name, gate.scope)))
    missing = [name for name in sorted(required) if all(gate.name != name for gate in found)]
    decisive = max(found, key=lambda gate: _STRICTNESS[_passage(gate)], default=None)
    passage = None if decisive is None else _passage(decisive)
    if missing and passage is not Passage.BLOCKED:  # what blocks does so whatever another gate would say
        return Reading(Passage.UNAVAILABLE, missing[0], found, tuple(missing))
    if decisive is None or passage is None:
        return NOT_ASKED
    return Reading(passage, None if passage is Passage.OPEN else decisive.name, found)


def unset(reading: Reading) -> Reason:
    """Which required gates were never set."""
    return Reason("gates_unset", {"gates": [*reading.missing]})


def moved(before: Mapping[str, int], now: Reading) -> bool:
    """Whether a gate was set since its version was read."""
    return dict(before) != now.versions


def _passage(gate: Gate) -> Passage:
    if gate.verdict == "override":
        return Passage.OPEN if gate.override_by else Passage.BLOCKED
    return _MEANS[gate.verdict]
