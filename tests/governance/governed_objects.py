"""Governed objects and action contexts for tests."""

from typing import Any

from pendula.governance.decisions import ActionContext
from pendula.governance.gates import EVERYTHING, REQUIRED, Gate
from pendula.governance.model import DAY_US, Governed, Impact, Mode, Risk
from pendula.jobs.reasons import Unknown

NOW = 1_771_632_000_000_000  # 2026-02-21T00:00:00Z
WHOLE: dict[str, Any] = {
    "falsify_if": "a counter-example",
    "review_interval": 7 * DAY_US,
    "expires_at": NOW + 100 * DAY_US,
    "evidence": ("ev_1",),
    "half_life": 30 * DAY_US,
}
UNCERTAIN: dict[str, Any] = {
    "unknown_type": Unknown.OUT_OF_SCOPE,
    "uncertain_since": NOW,
    "uncertainty_ttl": 7 * DAY_US,
    "auto_verify_budget": 2,
    "verify_budget_left": 2,
    "decision_mode": Mode.COLLECT,
}


def governed(object_type: str, place: str, **members: Any) -> Governed:
    status, _, epistemic = place.partition("/")
    uncertain = UNCERTAIN if "uncertain" in place else {}
    return Governed(
        object_type=object_type,
        object_id="x",
        status=status,
        epistemic=epistemic or None,
        version=1,
        updated_at=NOW - DAY_US,
        **{"created_at": NOW - DAY_US, **WHOLE, **uncertain, **members},
    )


def context(action: str, **members: Any) -> ActionContext:
    return ActionContext(**{"action": action, "now": NOW, "risk": Risk.LOW, "impact": Impact.LOW, **members})


def gates(**verdicts: str) -> tuple[Gate, ...]:
    """All required gates, passing by default."""
    words = {**dict.fromkeys(REQUIRED, "pass"), **verdicts}
    return tuple(Gate(name, EVERYTHING, verdict, 1, NOW, "mia", "set for a test") for name, verdict in words.items())
