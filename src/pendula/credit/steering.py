"""Control of a run: ticks, intensity, settings, pause, stop and restart.

A run that has ended refuses changes; a change of state that does not apply leaves the state unchanged.
"""

from pendula.credit import demonstration, saving
from pendula.credit.commands import Abandon, Pause, Restart, Resume, Stop, Tick
from pendula.credit.events import Event, LastError
from pendula.credit.model import Code
from pendula.credit.settings import InvalidSetting, change_settings
from pendula.credit.state.run_state import RunState
from pendula.credit.tick import phases
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome, Refusal

ABANDONED = LastError(Code.INTERNAL_ERROR.value, {"kind": "SERVER_RESTARTED"})


def ticks(run: RunState, command: Tick) -> Outcome[Event]:
    """Run ticks; fewer if a guardrail ends the run."""
    if run.state_word != "running":
        return Outcome(refusal=Refusal("run_conflict", {"kind": "run_not_running", "state": run.state_word}))
    run.callers_queue = command.queue_depth
    before = saving.mark(run)
    events: list[Event] = []
    try:
        for _ in range(command.count):
            run.in_flight = command.in_flight
            events += demonstration.tick(run) if run.config.mode == "fixtures" else phases.process(run)
            if run.state_word != "running":
                break
    except Exception:
        # External code failed: restore the run as it was before the command.
        if before is not None:
            saving.load(run, before)
        raise
    return Outcome(tuple(events), {"tick_index": run.tick, "state": run.state_word, **run.digests()})


def set_intensity(run: RunState, percent: int) -> Outcome[Event]:
    if not run.active:
        return _ended(run)
    run.intensity = percent
    return run.status_outcome()


def configure(run: RunState, values: dict[str, str]) -> Outcome[Event]:
    """Change settings, given as text; the length of a tick is fixed."""
    if not run.active:
        return _ended(run)
    try:
        settings = change_settings(run.settings, values)
    except InvalidSetting as refused:
        return Outcome(refusal=Refusal(refused.code, refused.facts))
    if settings.tick_ms_base != run.settings.tick_ms_base:
        facts: dict[str, Json] = {"kind": "fixed_tick_length", "variable": "SIMULATOR_TICK_MS_BASE"}
        return Outcome(refusal=Refusal("invalid_setting", facts))
    run.use(settings)
    return run.status_outcome()


def _ended(run: RunState) -> Outcome[Event]:
    return Outcome(refusal=Refusal("run_conflict", {"kind": "run_ended", "state": run.state_word}))


def change_state(run: RunState, command: Pause | Resume | Stop | Restart | Abandon) -> Outcome[Event]:
    match command, run.state_word:
        case Pause(), "running":
            run.state_word = "paused"
        case Resume(), "paused":
            run.state_word = "running"
        case Stop(source, reason), "running" | "paused":
            run.state_word, run.stop_source, run.stop_reason = "stopped", source, reason
        case Abandon(), "running" | "paused":
            run.fail(ABANDONED)
        case Restart(), _:
            run.state_word = "running"
            run.begin()
    return run.status_outcome()
