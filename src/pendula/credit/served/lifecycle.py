"""The states of a served run and their transitions.

A command that does not apply is not an error and leaves the state unchanged; only capacity limits refuse.
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
    """A transition of a run, by a client or by a guardrail (`fail`)."""

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
    # A run that fails while stopping has failed: its last writes may be missing.
    (RunState.STOPPING, Verb.FAIL): RunState.ERROR,
    **{
        (state, Verb.RESTART): RunState.RUNNING
        for state in (RunState.STOPPED, RunState.ERROR, RunState.RUNNING, RunState.PAUSED)
    },
}


def after(state: RunState, verb: Verb) -> RunState:
    """The next state; unchanged if the verb does not apply."""
    return TRANSITIONS.get((state, verb), state)


class Capacity(Struct, frozen=True):
    """Limits on active runs, in all and per owner; 0 and below is no limit."""

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
            f"The limit of active runs ({capacity.runs}) is reached; one of them is {active[0][0]}",
            conflict_kind="global_active_limit",
            active_run_id=active[0][0],
        )
