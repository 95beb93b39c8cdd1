"""The states of a served run and what each command makes of them: the whole table, and nothing besides it.

A command that does not apply leaves the state as it is and is not an error; only limits of capacity refuse.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from pendula.kernel.errors import InputRefused


class RunState(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    STOPPING = "stopping"
    STOPPED = "stopped"
    ERROR = "error"


class Verb(StrEnum):
    """What is done to a run: by a person, or by a guardrail (`fail`)."""

    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    STOPPED = "stopped"
    FAIL = "fail"
    RESTART = "restart"


ACTIVE = frozenset({RunState.RUNNING, RunState.PAUSED, RunState.STOPPING})
ENDED = frozenset({RunState.STOPPED, RunState.ERROR})

TRANSITIONS = {
    (RunState.IDLE, Verb.START): RunState.RUNNING,
    (RunState.RUNNING, Verb.PAUSE): RunState.PAUSED,
    (RunState.PAUSED, Verb.RESUME): RunState.RUNNING,
    (RunState.RUNNING, Verb.STOP): RunState.STOPPING,
    (RunState.PAUSED, Verb.STOP): RunState.STOPPING,
    (RunState.STOPPING, Verb.STOPPED): RunState.STOPPED,
    (RunState.RUNNING, Verb.FAIL): RunState.ERROR,
    (RunState.PAUSED, Verb.FAIL): RunState.ERROR,
    # A run that fails while it stops has failed: what it wrote last is in doubt.
    (RunState.STOPPING, Verb.FAIL): RunState.ERROR,
    **{
        (state, Verb.RESTART): RunState.RUNNING
        for state in (RunState.STOPPED, RunState.ERROR, RunState.RUNNING, RunState.PAUSED)
    },
}


def after(state: RunState, verb: Verb) -> RunState:
    """The state that follows; the same one where the verb does not apply."""
    return TRANSITIONS.get((state, verb), state)


class Capacity(Struct, frozen=True):
    """How many runs may be active, in all and of one owner; 0 and below is no limit."""

    runs: int = 1
    runs_per_owner: int = 1


class RunConflict(InputRefused):
    """A run cannot begin, or a command does not apply. Facts: `conflict_kind` and the id of the `active_run`."""

    code = "RUN_CONFLICT"


def admit(owner: str, active: Iterable[tuple[str, str]], capacity: Capacity) -> None:
    """Raise `RunConflict` if one more run of `owner` is too many; `active` are (run, owner), demo runs left out."""
    active = list(active)
    own = [run for run, theirs in active if theirs == owner]
    if 0 < capacity.runs_per_owner <= len(own):
        raise RunConflict(
            f"The run {own[0]} is active already; stop it first",
            conflict_kind="owner_active_exists",
            active_run_id=own[0],
        )
    if 0 < capacity.runs <= len(active):
        raise RunConflict(
            f"As many runs are active as may be ({capacity.runs}); {active[0][0]} is one of them",
            conflict_kind="global_active_limit",
            active_run_id=active[0][0],
        )
