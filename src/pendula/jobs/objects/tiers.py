"""The tiers that count for an object: an experience is at least as risky as what it is made of."""

from collections.abc import Callable

from pendula.jobs.objects.governed import Governed, Impact, Risk

MEMORY_REF = "memory:"
_RISKS, _IMPACTS = list(Risk), list(Impact)


def tiers(subject: Governed, memory: Callable[[str], Governed | None]) -> tuple[Risk, Impact]:
    """Those of the object; for an experience the highest of its source memories, and high where there are none.

    A tier that an experience was given itself counts with them: whoever said high must not be told low by its sources.
    """
    if subject.object_type != "experience":
        return subject.risk_tier, subject.impact_tier
    ids = (ref.removeprefix(MEMORY_REF) for ref in subject.sources if ref.startswith(MEMORY_REF))
    found = [one for one in map(memory, ids) if one is not None]
    if not found:
        return Risk.HIGH, subject.impact_tier
    risk = max((one.risk_tier for one in (subject, *found)), key=_RISKS.index)
    return risk, max((one.impact_tier for one in (subject, *found)), key=_IMPACTS.index)
