"""Effective tiers: those of an object itself, and for an experience also those of its sources."""

import pytest
from msgspec.structs import replace

from pendula.governance.model import Governed, Impact, Risk, tiers
from tests.governance.governed_objects import governed

MEMORIES = {
    "calm": replace(governed("memory", "active"), risk_tier=Risk.LOW, impact_tier=Impact.LOW),
    "risky": replace(governed("memory", "active"), risk_tier=Risk.HIGH, impact_tier=Impact.LOW),
    "grave": replace(governed("memory", "active"), risk_tier=Risk.MEDIUM, impact_tier=Impact.CRITICAL),
}


def _experience(*sources: str, risk: Risk = Risk.LOW, impact: Impact = Impact.LOW) -> Governed:
    refs = tuple(f"memory:{name}" for name in sources)
    return replace(governed("experience", "active"), sources=refs, risk_tier=risk, impact_tier=impact)


@pytest.mark.req("JOB-GATE-1")
@pytest.mark.parametrize(
    ("subject", "risk", "impact"),
    [
        (_experience("calm"), Risk.LOW, Impact.LOW),
        (_experience("calm", "risky"), Risk.HIGH, Impact.LOW),
        (_experience("calm", "grave", "gone"), Risk.MEDIUM, Impact.CRITICAL),
        (_experience("gone"), Risk.HIGH, Impact.LOW),
        (_experience(), Risk.HIGH, Impact.LOW),
        (_experience("calm", risk=Risk.HIGH), Risk.HIGH, Impact.LOW),
        (_experience("calm", impact=Impact.CRITICAL), Risk.LOW, Impact.CRITICAL),
        (replace(MEMORIES["calm"], sources=("memory:risky",)), Risk.LOW, Impact.LOW),
    ],
)
def test_an_experience_is_as_risky_as_the_riskiest_of_its_sources_and_of_itself(
    subject: Governed, risk: Risk, impact: Impact
) -> None:
    assert tiers(subject, MEMORIES.get) == (risk, impact)
