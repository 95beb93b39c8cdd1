"""The effective tiers of an object: an experience is at least as risky as its sources."""

from collections.abc import Callable

from pendula.jobs.objects.governed import Governed, Impact, Risk

MEMORY_REF = "memory:"
_RISKS, _IMPACTS = list(Risk), list(Impact)


def tiers(subject: Governed, memory: Callable[[str], Governed | None]) -> tuple[Risk, Impact]:
    """The tiers of the object; for an experience the highest among itself and its source memories.

    An experience without source memories has high risk. Its own tiers count, so that sources cannot lower them.
    """
    if subject.object_type != "experience":
        return subject.risk_tier, subject.impact_tier
    ids = (ref.removeprefix(MEMORY_REF) for ref in subject.sources if ref.startswith(MEMORY_REF))
    memories = [source for source in map(memory, ids) if source is not None]
    if not memories:
        return Risk.HIGH, subject.impact_tier
    risk = max((source.risk_tier for source in (subject, *memories)), key=_RISKS.index)
    return risk, max((source.impact_tier for source in (subject, *memories)), key=_IMPACTS.index)
