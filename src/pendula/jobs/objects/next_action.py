"""The next action of an object and its time, from its machine, its dates and the end of its uncertainty."""

from pendula.jobs.objects.governed import VERIFICATIONS, Governed
from pendula.jobs.objects.machine import Finding, Machine


def find_next_action(subject: Governed, machine: Machine, now: int) -> tuple[str, int] | None:
    """The next action and its time, never before now; None in a final state.

    If the object expires first and can be archived, that is next. An uncertain object is verified no later than the end
    of its uncertainty; without budget, exactly then.
    """
    follow = machine.follow.get(subject.place)
    if follow is None:
        return None
    dated = None if follow.at is None else getattr(subject, follow.at)
    action, at = follow.action, now + follow.after if dated is None else max(dated, now)
    if subject.place in machine.uncertain and action in VERIFICATIONS:
        at = _before_uncertainty_ends(subject, at, now)
    can_be_archived = machine.arrow(subject.place, "archive", Finding.EXPIRED) is not None
    if can_be_archived and subject.expires_at is not None and subject.expires_at <= at:
        return "archive", max(subject.expires_at, now)
    return action, at


def _before_uncertainty_ends(subject: Governed, at: int, now: int) -> int:
    ends = subject.uncertainty_ends
    if ends is None or ends <= now:
        return at
    return ends if subject.verify_budget_left <= 0 else min(at, ends)
