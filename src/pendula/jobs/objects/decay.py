"""The weight of an object: it halves with each half-life without use, more slowly after reinforcement.

Decimals of 28 digits, so that the comparison with a threshold is the same on every machine.
"""

from decimal import Context, Decimal

from pendula.jobs.objects.governed import Governed, Risk

THRESHOLDS = {Risk.LOW: Decimal("0.25"), Risk.MEDIUM: Decimal("0.20"), Risk.HIGH: Decimal("0.10")}
_HALF, _ONE = Decimal("0.5"), Decimal(1)


def weight(subject: Governed, now: int) -> Decimal:
    """Between 0 and 1; 1 for an object used or reinforced just now."""
    context = Context(prec=28)
    newest = max(
        time for time in (subject.created_at, subject.last_accessed_at, subject.last_reinforced_at) if time is not None
    )
    unused = Decimal(max(0, now - newest))
    reinforced = context.add(_ONE, context.ln(Decimal(1 + subject.reinforcement_count)))
    lasting = context.multiply(reinforced, context.add(_ONE, subject.impact_weight))
    halvings = context.divide(unused, context.multiply(Decimal(subject.half_life), lasting))
    return context.power(_HALF, halvings)


def has_faded(subject: Governed, risk: Risk, now: int) -> bool:
    """Whether the weight is below the threshold of this risk."""
    return weight(subject, now) < THRESHOLDS[risk]
