"""The states of a task and their legal transitions; any other transition is a bug."""

from pendula.fleet.contracts.traffic import TaskState as State

ALLOWED: dict[State | None, frozenset[State]] = {
    None: frozenset({State.WAITING}),
    # Its conditions hold, or no longer hold.
    State.WAITING: frozenset({State.READY, State.HELD, State.CANCELLED}),
    State.READY: frozenset({State.WAITING, State.ASSIGNED, State.PENDING_PREEMPT, State.HELD, State.CANCELLED}),
    # A truck has it and waits for its route, or drives on to the node where it leaves its way to rest.
    State.ASSIGNED: frozenset({State.IN_PROGRESS, State.READY, State.HELD, State.CANCELLED}),
    State.PENDING_PREEMPT: frozenset({State.IN_PROGRESS, State.READY, State.HELD, State.CANCELLED}),
    # Back to READY only before it is loaded.
    State.IN_PROGRESS: frozenset({State.DONE, State.READY, State.HELD, State.FAILED, State.CANCELLED}),
    # A loaded task continues with the same truck.
    State.HELD: frozenset({State.READY, State.IN_PROGRESS, State.FAILED, State.CANCELLED}),
    State.DONE: frozenset(),
    State.FAILED: frozenset(),
    State.CANCELLED: frozenset(),
}
OVER = frozenset(state for state, onward in ALLOWED.items() if state is not None and not onward)
# Tasks that have a truck.
TAKEN = frozenset({State.ASSIGNED, State.PENDING_PREEMPT, State.IN_PROGRESS})


def check(before: State | None, after: State) -> None:
    """Raises `AssertionError` for a transition that is not in the table."""
    assert after in ALLOWED[before], f"a task does not get from {before} to {after}"
