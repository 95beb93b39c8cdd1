"""Starts and ends without interrupts, as a recurrence over submissions; independent of oracle and engine."""

from collections.abc import Sequence


def closed_form(instances: Sequence[tuple[int, int, Sequence[str]]]) -> list[tuple[int, int]]:
    """Starts and ends of `(t_submit, d_eff, locks)` in admission order, without interrupts (ACT-LOCK-5)."""
    free: dict[str, int] = {}
    times = []
    for submitted, duration, locks in instances:
        start = max([submitted, *(free.get(lock, 0) for lock in locks)])
        for lock in locks:
            free[lock] = start + duration
        times.append((start, start + duration))
    return times
