"""Settings: defaults of the requirements; every value is read exactly or rejected by name before a run."""

from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.engine import Run
from pendula.credit.runs.headless import plan_run
from pendula.credit.settings import (
    BY_NAME,
    BY_VARIABLE,
    TABLE,
    ClearingMode,
    ClearingPolicy,
    InvalidSetting,
    Kind,
    OnLimit,
    RoutingMode,
    Setting,
    Settings,
    change_settings,
    check_settings,
    from_environment,
    parse_setting,
)
from pendula.documents import from_value
from pendula.kernel.errors import InputRefused
from tests.credit.conftest import network

DEFAULTS: dict[str, Any] = {
    "SIMULATOR_TICK_MS_BASE": 1000,
    "SIMULATOR_ACTIONS_PER_TICK_MAX": 20,
    "SIMULATOR_ACTIONS_PER_TICK_MIN": 0,
    "SIMULATOR_FIXED_SEED": None,
    "SIMULATOR_WORK_UNITS_PER_MS": 1000,
    "SIMULATOR_PROFILE_PRESETS": True,
    "SIMULATOR_REAL_AMOUNT_CAP": 300_000_000,
    "SIMULATOR_REAL_MAX_IN_FLIGHT": 1,
    "SIMULATOR_MAX_PAYMENTS_PER_SEC": 0,
    "SIMULATOR_ON_LIMIT": OnLimit.WAIT,
    "SIMULATOR_QUEUE_MAX": 1000,
    "SIMULATOR_REAL_MAX_TIMEOUTS_PER_TICK": 5,
    "SIMULATOR_REAL_MAX_ERRORS_TOTAL": 200,
    "SIMULATOR_REAL_MAX_CONSEC_TICK_FAILURES": 3,
    "SIMULATOR_PAYMENT_RETRIES": 0,
    "SIMULATOR_STOP_GRACE_SEC": 5,
    "SIMULATOR_REAL_ENABLE_INJECT": False,
    "SIMULATOR_CLEARING_POLICY": "static",
    "SIMULATOR_CLEARING_EVERY_N_TICKS": 25,
    "SIMULATOR_CLEARING_MAX_DEPTH": 6,
    "SIMULATOR_REAL_CLEARING_TIME_BUDGET_MS": 250,
    "SIMULATOR_REAL_CLEARING_HARD_TIMEOUT_SEC": 8,
    "SIMULATOR_CLEARING_MAX_CYCLES_PER_CALL": 100,
    "SIMULATOR_EMIT_CLEARING_PLAN": True,
    "SIMULATOR_CLEARING_MAX_EDGES_FOR_FX": 30,
    "CLEARING_ENABLED": True,
    "ROUTING_MAX_HOPS": 6,
    "ROUTING_MAX_PATHS": 3,
    "ROUTING_PATH_FINDING_TIMEOUT_MS": 500,
    "PREPARE_TIMEOUT_SECONDS": 3,
    "COMMIT_TIMEOUT_SECONDS": 5,
    "PAYMENT_TOTAL_TIMEOUT_SECONDS": 10,
    "PREPARE_LOCK_TTL_SECONDS": 30,
    "SIMULATOR_ACTIONS_ENABLE": False,
}
ADAPTIVE: dict[str, Any] = {
    "WINDOW_TICKS": 30,
    "NO_CAPACITY_HIGH": Decimal("0.60"),
    "NO_CAPACITY_LOW": Decimal("0.30"),
    "MIN_INTERVAL_TICKS": 5,
    "BACKOFF_MAX_INTERVAL_TICKS": 60,
    "MAX_DEPTH_MIN": None,  # the maximum
    "MAX_DEPTH_MAX": 6,
    "TIME_BUDGET_MS_MIN": 50,
    "TIME_BUDGET_MS_MAX": 250,
    "INFLIGHT_THRESHOLD": 0,
    "QUEUE_DEPTH_THRESHOLD": 0,
    "WARMUP_FALLBACK_CADENCE": None,
    "TICK_BUDGET_MS": 0,
    "MAX_EQ_PER_TICK": 0,
}
NUMBERS = [setting for setting in TABLE if setting.kind in (Kind.INTEGER, Kind.DECIMAL) and not setting.fixed]


def by_variable(settings: Settings) -> dict[str, Any]:
    return {setting.variable: getattr(settings, setting.name) for setting in TABLE}


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.req("SIM-ADP-2")
def test_defaults_equal_the_requirements() -> None:
    expected = {**DEFAULTS, **{f"SIMULATOR_CLEARING_ADAPTIVE_{name}": value for name, value in ADAPTIVE.items()}}
    values = by_variable(from_environment({}))

    assert {name: values[name] for name in expected} == expected


@pytest.mark.req("SIM-GUARD-1")
def test_every_setting_has_one_row_in_the_table() -> None:
    assert [setting.name for setting in TABLE] == list(Settings.__struct_fields__)
    assert len(BY_NAME) == len(BY_VARIABLE) == len(TABLE)
    assert all(setting.meaning and setting.allowed for setting in TABLE)


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize("empty", ["", " ", "\t"])
def test_missing_and_empty_variables_mean_the_default(empty: str) -> None:
    assert from_environment({setting.variable: empty for setting in TABLE}) == from_environment({}) == Settings()


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize("setting", TABLE, ids=lambda setting: setting.name)
@pytest.mark.parametrize("word", ["?", "1.2.3", "0x10", "on off", "1 000", "-", "null", "9" * 31, "1_0", "٣"])
def test_an_unreadable_value_is_rejected_with_variable_value_and_allowed_values(setting: Setting, word: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        from_environment({setting.variable: word})

    assert isinstance(refused.value, InputRefused)
    assert refused.value.details == {"variable": setting.variable, "value": word, "allowed": setting.allowed}
    assert setting.variable in refused.value.message
    assert repr(word) in refused.value.message
    assert setting.allowed in refused.value.message


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize("setting", NUMBERS, ids=lambda setting: setting.name)
def test_numbers_are_accepted_up_to_both_ends_of_their_range(setting: Setting) -> None:
    assert [parse_setting(setting, str(value)) for value in (setting.least, setting.most)] == [
        setting.least,
        setting.most,
    ]
    for beyond in (setting.least - 1, setting.most + 1):
        with pytest.raises(InvalidSetting):
            parse_setting(setting, str(beyond))
        with pytest.raises(InvalidSetting):
            check_settings(msgspec.structs.replace(Settings(), **{setting.name: beyond}))


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize(
    "setting", [setting for setting in NUMBERS if setting.kind is Kind.INTEGER], ids=lambda setting: setting.name
)
@pytest.mark.parametrize("word", ["1.0", "1.5", "1e1", "+1", "--1", "true", "nan"])
def test_integers_are_written_as_integers(setting: Setting, word: str) -> None:
    with pytest.raises(InvalidSetting):
        parse_setting(setting, word)


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize(
    "word", ["NaN", "sNaN", "Infinity", "-inf", "1e9999999999999999999", "1e-400", "", "1,5", "0_1", "٠.٥"]
)
def test_decimals_are_finite_and_bounded_in_length(word: str) -> None:
    with pytest.raises(InvalidSetting):
        parse_setting(BY_NAME["adaptive_no_capacity_high"], word)


@pytest.mark.req("SIM-DET-14")
def test_decimals_are_exact() -> None:
    assert change_settings(
        Settings(), {"adaptive_no_capacity_high": "0.6000000000000000000001"}
    ).adaptive_no_capacity_high == (Decimal("0.6000000000000000000001"))


@pytest.mark.parametrize(
    ("word", "value"),
    [("1", True), ("TRUE", True), ("Yes", True), ("on", True), ("0", False), ("False", False), ("no", False),
     ("OFF", False), (" on ", True)],
)  # fmt: skip
def test_switches_accept_several_words(word: str, value: bool) -> None:
    assert from_environment({"SIMULATOR_REAL_ENABLE_INJECT": word}).enable_inject is value


@pytest.mark.parametrize(
    ("variable", "word", "value"),
    [
        ("SIMULATOR_CLEARING_POLICY", "Adaptive", ClearingPolicy.ADAPTIVE),
        ("SIMULATOR_CLEARING_MODE", "optimal", ClearingMode.OPTIMAL),
        ("ROUTING_MODE", "EXACT", RoutingMode.EXACT),
    ],
)
def test_words_are_read_in_any_case(variable: str, word: str, value: Any) -> None:
    assert by_variable(from_environment({variable: word}))[variable] is value


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize(
    ("word", "atoms"),
    [("3.00", 300_000_000), ("500", 50_000_000_000), ("9.999", 999_000_000), ("0.009", 0), ("0", 0), ("none", None),
     ("OFF", None), (" 2.5 ", 250_000_000), ("1e2", 10_000_000_000)],
)  # fmt: skip
def test_the_cap_is_rounded_down_to_the_cent_and_can_be_switched_off(word: str, atoms: int | None) -> None:
    assert from_environment({"SIMULATOR_REAL_AMOUNT_CAP": word}).amount_cap == atoms


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize(
    "word", ["-1", "-0.01", "three", "NaN", "inf", "1e13", "1e400", "1e99999999999999999999", "3,0"]
)
def test_an_invalid_cap_is_rejected(word: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        from_environment({"SIMULATOR_REAL_AMOUNT_CAP": word})

    assert refused.value.details["variable"] == "SIMULATOR_REAL_AMOUNT_CAP"


@pytest.mark.req("SIM-ADP-16")
@pytest.mark.parametrize(
    ("low", "high"),
    [
        ({"NO_CAPACITY_LOW": "0.60"}, "NO_CAPACITY_HIGH"),
        ({"NO_CAPACITY_LOW": "0.5", "NO_CAPACITY_HIGH": "0.4"}, "NO_CAPACITY_HIGH"),
        ({"NO_CAPACITY_HIGH": "0.3"}, "NO_CAPACITY_HIGH"),
        ({"MAX_DEPTH_MIN": "7"}, "MAX_DEPTH_MAX"),
        ({"MAX_DEPTH_MIN": "3", "MAX_DEPTH_MAX": "2"}, "MAX_DEPTH_MAX"),
        ({"TIME_BUDGET_MS_MIN": "251"}, "TIME_BUDGET_MS_MAX"),
        ({"TIME_BUDGET_MS_MAX": "49"}, "TIME_BUDGET_MS_MAX"),
    ],
)
def test_crossed_ranges_are_rejected_with_both_names(low: dict[str, str], high: str) -> None:
    given = {f"SIMULATOR_CLEARING_ADAPTIVE_{name}": value for name, value in low.items()}

    with pytest.raises(InvalidSetting) as refused:
        from_environment(given)

    assert f"SIMULATOR_CLEARING_ADAPTIVE_{high}" in refused.value.message


@pytest.mark.req("SIM-ADP-16")
@pytest.mark.parametrize(
    ("name", "value"),
    [("WINDOW_TICKS", "0"), ("MIN_INTERVAL_TICKS", "0"), ("NO_CAPACITY_LOW", "-0.1"), ("NO_CAPACITY_HIGH", "1.01")],
)
def test_adaptive_settings_out_of_range_are_rejected(name: str, value: str) -> None:
    with pytest.raises(InvalidSetting):
        from_environment({f"SIMULATOR_CLEARING_ADAPTIVE_{name}": value})


@pytest.mark.req("SIM-ADP-16")
def test_adaptive_ranges_can_be_single_values() -> None:
    given = {"adaptive_max_depth_min": "6", "adaptive_time_budget_ms_min": "250", "adaptive_no_capacity_low": "0"}

    assert change_settings(Settings(), given).adaptive_max_depth_min == 6


@pytest.mark.req("SIM-ADP-21")
def test_the_least_depth_follows_the_greatest_unless_given() -> None:
    given = [{}, {"adaptive_max_depth_max": "4"}, {"adaptive_max_depth_min": "3"}]

    assert [change_settings(Settings(), values).least_depth for values in given] == [6, 4, 3]


def test_the_smallest_budget_cannot_exceed_the_largest() -> None:
    with pytest.raises(InvalidSetting, match="SIMULATOR_ACTIONS_PER_TICK_MIN"):
        change_settings(Settings(), {"actions_per_tick_min": "21"})


def test_settings_change_by_name_or_variable_and_the_others_stay() -> None:
    before = change_settings(Settings(), {"routing_max_hops": "4"})
    after = change_settings(before, {"SIMULATOR_TICK_MS_BASE": " 250 ", "amount_cap": "none"})

    assert (after.routing_max_hops, after.tick_ms_base, after.amount_cap) == (4, 250, None)
    assert change_settings(after, {}) == after


def test_an_unknown_name_is_rejected_with_all_names() -> None:
    with pytest.raises(InvalidSetting) as refused:
        change_settings(Settings(), {"speed": "5"})

    assert refused.value.details["variable"] == "speed"
    assert refused.value.details["allowed"] == sorted(BY_NAME)


@given(st.sampled_from(TABLE), st.text(max_size=40))
def test_any_text_is_read_or_rejected(setting: Setting, word: str) -> None:
    try:
        settings = change_settings(Settings(), {setting.name: word})
    except InvalidSetting:
        return

    assert check_settings(settings) == settings
    again = getattr(settings, setting.name)
    if setting.kind is Kind.INTEGER:
        assert str(again) == str(int(word))


def test_a_configuration_rejects_settings_of_excessive_precision() -> None:
    config: Any = plan_run(from_value(network(("a", "b", 1)))).json
    config["settings"]["adaptive_no_capacity_low"] = Decimal("1e-200")

    with pytest.raises(InvalidSetting):
        Run.create(config)


@pytest.mark.req("SIM-GUARD-1")
@pytest.mark.parametrize(
    ("variable", "default", "other"),
    [
        ("SIMULATOR_STOP_GRACE_SEC", "5", "9"),
        ("PREPARE_TIMEOUT_SECONDS", "3", "9"),
        ("COMMIT_TIMEOUT_SECONDS", "5", "9"),
        ("PREPARE_LOCK_TTL_SECONDS", "30", "9"),
    ],
)
def test_a_value_without_effect_is_rejected_with_the_reason(variable: str, default: str, other: str) -> None:
    assert from_environment({variable: default}) == Settings()
    with pytest.raises(InvalidSetting, match="no effect") as refused:
        from_environment({variable: other})
    with pytest.raises(InvalidSetting, match="no effect"):
        change_settings(Settings(), {variable: other})
    assert refused.value.details["allowed"] == default


def test_a_stored_run_with_a_value_without_effect_still_loads() -> None:
    assert check_settings(msgspec.structs.replace(Settings(), stop_grace_sec=4)).stop_grace_sec == 4


def test_a_long_value_is_not_repeated_in_the_message() -> None:
    with pytest.raises(InvalidSetting) as caught:
        from_environment({"SIMULATOR_REAL_AMOUNT_CAP": "`" * 1_000_000})

    assert len(caught.value.message) < 500
    assert len(str(caught.value.details)) < 500
