"""Due events of a scenario, and the multipliers of stress events."""

from collections.abc import Iterable, Sequence

from pendula.credit.model import EventType, Multiplier, TimelineEvent


def multipliers(events: Sequence[TimelineEvent], at_ms: int) -> tuple[Multiplier, ...]:
    """The multipliers of all active stress events, in the order of the file."""
    return tuple(multiplier for event in events if _is_on(event, at_ms) for multiplier in event.multipliers)


def _is_on(event: TimelineEvent, at_ms: int) -> bool:
    if event.type is not EventType.STRESS or event.time is None:
        return False
    if not event.duration:
        return at_ms == event.time
    return event.time <= at_ms < event.time + event.duration


def due(events: Iterable[TimelineEvent], fired: int, at_ms: int) -> list[TimelineEvent]:
    """Due events that did not fire yet; `fired` has a bit for each event that did."""
    return [
        event for event in events if event.time is not None and event.time <= at_ms and not fired >> event.index & 1
    ]
