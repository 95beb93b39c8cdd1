"""Gates: their verdicts, which of them are required, and their combined verdict on an action.

The strictest wins. A gate that was never set does not pass.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from pendula.governance.model import Impact, Risk
from pendula.jobs.reasons import Reason

PERSONA, RISK, COGNITION, SOCIAL = "persona_conflict_gate", "risk_gate", "cognition_gate", "social_gate"
VERDICTS = {
    PERSONA: ("pass", "block", "override"),
    RISK: ("pass", "limit", "block"),
    COGNITION: ("pass", "degrade", "block"),
    SOCIAL: ("pass", "block", "defer"),
}
REQUIRED = (PERSONA, RISK, COGNITION)
EVERYTHING = "*"  # the scope of a gate for all objects


class Gate(Struct, frozen=True):
    """One gate; `override_by` is the user who overrode it, `version` grows by one with each change."""

    name: str
    scope: str
    verdict: str
    version: int
    set_at: int
    set_by: str
    reason: str
    override_by: str | None = None


class Passage(StrEnum):
    """What the gates allow together, the strictest last."""

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
    """The combined gates at one moment: what they allow, which gate decided it, and every version read.

    `missing` are required gates that were never set.
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
        """The strictest verdict of each gate."""
        strictest: dict[str, Gate] = {}
        for gate in self.gates:
            known = strictest.get(gate.name)
            if known is None or _STRICTNESS[_passage(gate)] > _STRICTNESS[_passage(known)]:
                strictest[gate.name] = gate
        return {name: strictest[name].verdict for name in sorted(strictest)}


NO_GATES = Reading(Passage.OPEN, None, ())


def is_high_risk(risk: Risk, impact: Impact) -> bool:
    return risk is Risk.HIGH or impact is Impact.CRITICAL


def effective_risk(risk: Risk, impact: Impact) -> Risk:
    """A critical impact makes the risk high."""
    return Risk.HIGH if is_high_risk(risk, impact) else risk


def read(gates: Iterable[Gate], required: Sequence[str]) -> Reading:
    """Combine gates. Among equally strict ones the first by name and scope has decided."""
    ordered = tuple(sorted(gates, key=lambda gate: (gate.name, gate.scope)))
    missing = [name for name in sorted(required) if all(gate.name != name for gate in ordered)]
    decisive = max(ordered, key=lambda gate: _STRICTNESS[_passage(gate)], default=None)
    passage = None if decisive is None else _passage(decisive)
    if missing and passage is not Passage.BLOCKED:  # a blocking gate decides even if another is missing
        return Reading(Passage.UNAVAILABLE, missing[0], ordered, tuple(missing))
    if decisive is None or passage is None:
        return NO_GATES
    return Reading(passage, None if passage is Passage.OPEN else decisive.name, ordered)


def explain_missing(reading: Reading) -> Reason:
    """Which required gates were never set."""
    return Reason("gates_unset", {"gates": [*reading.missing]})


def moved(before: Mapping[str, int], now: Reading) -> bool:
    """Whether a gate has changed since these versions were read."""
    return dict(before) != now.versions


def _passage(gate: Gate) -> Passage:
    if gate.verdict == "override":
        return Passage.OPEN if gate.override_by else Passage.BLOCKED
    return _MEANS[gate.verdict]
