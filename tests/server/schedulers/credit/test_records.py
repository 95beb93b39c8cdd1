"""The states of a run: the whole table, and the limits on active runs."""

import pytest

from pendula.server.schedulers.credit.records import (
    ACTIVE,
    TRANSITIONS,
    Capacity,
    RunConflict,
    RunState,
    Verb,
    admit,
    after,
)

# Written from the requirement, not from the module.
TABLE = {
    ("running", "pause"): "paused",
    ("paused", "resume"): "running",
    ("running", "stop"): "stopping",
    ("paused", "stop"): "stopping",
    ("running", "fail"): "error",
    ("paused", "fail"): "error",
    ("stopping", "fail"): "error",
    ("stopped", "restart"): "running",
    ("error", "restart"): "running",
    ("running", "restart"): "running",
    ("paused", "restart"): "running",
    ("idle", "start"): "running",
    ("stopping", "stopped"): "stopped",
}


@pytest.mark.req("SIM-RUN-2", "SIM-RUN-3")
@pytest.mark.parametrize("verb", Verb)
@pytest.mark.parametrize("state", RunState)
def test_every_command_in_every_state_follows_the_table(state: RunState, verb: Verb) -> None:
    assert after(state, verb).value == TABLE.get((state.value, verb.value), state.value)


def test_the_table_has_no_other_rows() -> None:
    assert {(state.value, verb.value) for state, verb in TRANSITIONS} == set(TABLE)


@pytest.mark.req("SIM-RUN-10")
def test_running_paused_and_stopping_runs_are_active() -> None:
    assert {state.value for state in ACTIVE} == {"running", "paused", "stopping"}


@pytest.mark.req("SIM-RUN-10")
@pytest.mark.parametrize(
    ("capacity", "active", "kind"),
    [
        (Capacity(), [], None),
        (Capacity(), [("run_1", "ann")], "owner_active_exists"),
        (Capacity(), [("run_1", "ben")], "global_active_limit"),
        (Capacity(2, 1), [("run_1", "ben")], None),
        (Capacity(2, 1), [("run_1", "ben"), ("run_2", "cid")], "global_active_limit"),
        (Capacity(0, 1), [("run_1", "ben")] * 9, None),
        (Capacity(0, -1), [("run_1", "ann")] * 9, None),
        (Capacity(3, 2), [("run_1", "ann"), ("run_2", "ben")], None),
        (Capacity(3, 2), [("run_1", "ann"), ("run_2", "ann")], "owner_active_exists"),
    ],
)
def test_another_run_is_admitted_or_the_conflicting_one_is_named(
    capacity: Capacity, active: list[tuple[str, str]], kind: str | None
) -> None:
    if kind is None:
        admit("ann", active, capacity)
        return
    with pytest.raises(RunConflict) as refused:
        admit("ann", active, capacity)

    assert (refused.value.details["conflict_kind"], refused.value.details["active_run_id"]) == (kind, "run_1")
