"""Every setting of a run, its variable, default and range; read from the environment once and validated.

A typo must never silently run a different experiment: an invalid value is refused with the variable, the value and the
allowed range.
"""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Self

import msgspec
from msgspec import Struct

from pendula.credit.money import CENT, InvalidAmount, atoms
from pendula.credit.money import text as amount_text
from pendula.credit.sentences import allowed_values, sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import cut

TICKS_MOST = 1 << 53
NUMBER_MOST = 10**9
IN_FLIGHT_MOST = 1000


class InvalidSetting(InputRefused):
    """Facts: `variable`, `value`, `allowed`. `facts` are those of a refusal, from which its sentence is rendered."""

    code = "invalid_setting"
    facts: dict[str, Json]

    @classmethod
    def of(cls, allowed: object, facts: dict[str, Json]) -> Self:
        message = sentence_of(cls.code, facts)
        refused = cls(message, variable=facts["variable"], value=facts["value"], allowed=allowed)
        refused.facts = facts
        return refused


class ClearingPolicy(StrEnum):
    STATIC = "static"
    ADAPTIVE = "adaptive"


class ClearingMode(StrEnum):
    """`cycles` clears bounded cycles one by one; `optimal` a circulation of the largest volume at once."""

    CYCLES = "cycles"
    OPTIMAL = "optimal"


class RoutingMode(StrEnum):
    """`greedy` takes shortest routes one by one; `exact` refuses only payments that no set of routes can carry."""

    GREEDY = "greedy"
    EXACT = "exact"


class OnLimit(StrEnum):
    """Whether payments above the rate limit wait for the next tick or are dropped."""

    WAIT = "wait"
    DROP = "drop"


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The effective settings; times in milliseconds or seconds as their names say, the cap in atoms or None."""

    tick_ms_base: int = 1000
    actions_per_tick_max: int = 20
    actions_per_tick_min: int = 0
    fixed_seed: int | None = None
    work_units_per_ms: int = 1000
    profile_presets: bool = True
    amount_cap: int | None = 3 * 10**8
    max_in_flight: int = 1
    max_payments_per_sec: int = 0
    on_limit: OnLimit = OnLimit.WAIT
    queue_max: int = 1000
    max_timeouts_per_tick: int = 5
    max_errors_total: int = 200
    max_consec_tick_failures: int = 3
    payment_retries: int = 0
    stop_grace_sec: int = 5
    enable_inject: bool = False
    clearing_policy: ClearingPolicy = ClearingPolicy.STATIC
    clearing_every_n_ticks: int = 25
    clearing_max_depth: int = 6
    clearing_time_budget_ms: int = 250
    clearing_hard_timeout_sec: int = 8
    clearing_max_cycles_per_call: int = 100
    clearing_mode: ClearingMode = ClearingMode.CYCLES
    clearing_yardstick: bool = False
    emit_clearing_plan: bool = True
    emit_tick_events: bool = False
    clearing_max_edges_for_fx: int = 30
    adaptive_window_ticks: int = 30
    adaptive_no_capacity_high: Decimal = Decimal("0.60")
    adaptive_no_capacity_low: Decimal = Decimal("0.30")
    adaptive_min_interval_ticks: int = 5
    adaptive_backoff_max_interval_ticks: int = 60
    adaptive_max_depth_min: int | None = None
    adaptive_max_depth_max: int = 6
    adaptive_time_budget_ms_min: int = 50
    adaptive_time_budget_ms_max: int = 250
    adaptive_inflight_threshold: int = 0
    adaptive_queue_depth_threshold: int = 0
    adaptive_warmup_fallback_cadence: int | None = None
    adaptive_tick_budget_ms: int = 0
    adaptive_max_eq_per_tick: int = 0
    clearing_enabled: bool = True
    routing_max_hops: int = 6
    routing_max_paths: int = 3
    routing_mode: RoutingMode = RoutingMode.GREEDY
    routing_timeout_ms: int = 500
    prepare_timeout_sec: int = 3
    commit_timeout_sec: int = 5
    payment_total_timeout_sec: int = 10
    prepare_lock_ttl_sec: int = 30
    actions_enable: bool = False

    @property
    def least_depth(self) -> int:
        """The depth of the adaptive policy at the low threshold; by default that at the high threshold."""
        given = self.adaptive_max_depth_min
        return self.adaptive_max_depth_max if given is None else given


class Kind(StrEnum):
    INTEGER = "integer"
    DECIMAL = "decimal"
    SWITCH = "switch"
    AMOUNT = "amount"
    WORD = "word"


class Setting(Struct, frozen=True):
    """One row of the table of settings."""

    name: str
    variable: str
    meaning: str
    kind: Kind = Kind.INTEGER
    least: int = 0
    most: int = NUMBER_MOST
    words: type[StrEnum] | None = None
    # Why only the default is accepted, as a key of `WITHOUT_EFFECT`: any other value would change nothing.
    fixed: str = ""

    @property
    def range(self) -> dict[str, Json]:
        """What is accepted, as facts."""
        if self.kind in (Kind.INTEGER, Kind.DECIMAL):
            return {"type": self.kind.value, "least": self.least, "most": self.most}
        words: list[Json] = [] if self.words is None else list(map(str, self.words))
        return {"type": self.kind.value, "words": words} if words else {"type": self.kind.value}

    @property
    def allowed(self) -> str:
        return allowed_values(self.range)


_S = "SIMULATOR_"
_C = "SIMULATOR_CLEARING_"
_A = "SIMULATOR_CLEARING_ADAPTIVE_"
_R = "SIMULATOR_REAL_"
_ONE_STEP = "one_step"
_ANY = -NUMBER_MOST  # zero and below switch it off

TABLE: tuple[Setting, ...] = (
    Setting("tick_ms_base", _S + "TICK_MS_BASE", "virtual milliseconds per tick", least=1),
    Setting("actions_per_tick_max", _S + "ACTIONS_PER_TICK_MAX", "budget at 100 %", most=1_000_000),
    Setting("actions_per_tick_min", _S + "ACTIONS_PER_TICK_MIN", "least budget above 0 %", most=1_000_000),
    Setting("fixed_seed", _S + "FIXED_SEED", "seed when neither request nor scenario gives one", most=(1 << 64) - 1),
    Setting("work_units_per_ms", _S + "WORK_UNITS_PER_MS", "examined edges that stand for a millisecond", least=1),
    Setting("profile_presets", _S + "PROFILE_PRESETS", "presets for the ten known profile ids", Kind.SWITCH),
    Setting("amount_cap", _R + "AMOUNT_CAP", "largest amount of a planned payment", Kind.AMOUNT),
    Setting(
        *("max_in_flight", _R + "MAX_IN_FLIGHT", "calls to an outside payment service at the same time"),
        least=1,
        most=IN_FLIGHT_MOST,
    ),
    Setting("max_payments_per_sec", _S + "MAX_PAYMENTS_PER_SEC", "payments per second; 0 is off", least=_ANY),
    Setting("on_limit", _S + "ON_LIMIT", "payments above the rate wait or are dropped", Kind.WORD, words=OnLimit),
    Setting("queue_max", _S + "QUEUE_MAX", "payments that may wait; the newest beyond it are dropped", most=1_000_000),
    Setting("max_timeouts_per_tick", _R + "MAX_TIMEOUTS_PER_TICK", "timeouts in a tick that end a run", least=_ANY),
    Setting("max_errors_total", _R + "MAX_ERRORS_TOTAL", "technical errors that end a run", least=_ANY),
    Setting(
        "max_consec_tick_failures", _R + "MAX_CONSEC_TICK_FAILURES", "failed ticks in a row that end a run", least=_ANY
    ),
    Setting("payment_retries", _S + "PAYMENT_RETRIES", "further attempts of a payment that timed out", most=100),
    Setting(
        *("stop_grace_sec", _S + "STOP_GRACE_SEC", "seconds for payments in flight when a run stops"),
        fixed="whole_ticks",
    ),
    Setting("enable_inject", _R + "ENABLE_INJECT", "inject events change the network", Kind.SWITCH),
    Setting("clearing_policy", _C + "POLICY", "when clearing is tried", Kind.WORD, words=ClearingPolicy),
    Setting("clearing_every_n_ticks", _C + "EVERY_N_TICKS", "cadence of static clearing; 0 is off", least=_ANY),
    Setting("clearing_max_depth", _C + "MAX_DEPTH", "most edges of a cleared cycle", least=1, most=64),
    Setting("clearing_time_budget_ms", _R + "CLEARING_TIME_BUDGET_MS", "most time for one call", least=1),
    Setting("clearing_hard_timeout_sec", _R + "CLEARING_HARD_TIMEOUT_SEC", "cap of the hard timeout of a call"),
    Setting("clearing_max_cycles_per_call", _C + "MAX_CYCLES_PER_CALL", "cycles cleared in one call", least=1),
    Setting("clearing_mode", _C + "MODE", "how debts are cleared", Kind.WORD, words=ClearingMode),
    Setting("clearing_yardstick", _C + "YARDSTICK", "compare each call with the optimum", Kind.SWITCH),
    Setting("emit_clearing_plan", _S + "EMIT_CLEARING_PLAN", "announce a clearing before it begins", Kind.SWITCH),
    Setting("emit_tick_events", _S + "EMIT_TICK_EVENTS", "stream a debug event for each tick", Kind.SWITCH),
    Setting("clearing_max_edges_for_fx", _C + "MAX_EDGES_FOR_FX", "most edges listed in cycle_edges"),
    Setting("adaptive_window_ticks", _A + "WINDOW_TICKS", "length of the rolling window", least=1, most=1_000_000),
    Setting("adaptive_no_capacity_high", _A + "NO_CAPACITY_HIGH", "rate that switches on", Kind.DECIMAL, most=1),
    Setting("adaptive_no_capacity_low", _A + "NO_CAPACITY_LOW", "rate that switches off", Kind.DECIMAL, most=1),
    Setting("adaptive_min_interval_ticks", _A + "MIN_INTERVAL_TICKS", "ticks between two calls", least=1),
    Setting("adaptive_backoff_max_interval_ticks", _A + "BACKOFF_MAX_INTERVAL_TICKS", "ceiling of backoff", least=1),
    Setting("adaptive_max_depth_min", _A + "MAX_DEPTH_MIN", "depth at low pressure", least=1, most=64),
    Setting("adaptive_max_depth_max", _A + "MAX_DEPTH_MAX", "depth at full pressure", least=1, most=64),
    Setting("adaptive_time_budget_ms_min", _A + "TIME_BUDGET_MS_MIN", "budget at low pressure", least=1),
    Setting("adaptive_time_budget_ms_max", _A + "TIME_BUDGET_MS_MAX", "budget at full pressure", least=1),
    Setting("adaptive_inflight_threshold", _A + "INFLIGHT_THRESHOLD", "payments in flight; 0 is off", least=_ANY),
    Setting("adaptive_queue_depth_threshold", _A + "QUEUE_DEPTH_THRESHOLD", "waiting actions; 0 is off", least=_ANY),
    Setting(
        "adaptive_warmup_fallback_cadence",
        _A + "WARMUP_FALLBACK_CADENCE",
        "cadence while the window fills; 0 is off; the static cadence when not given",
        least=_ANY,
    ),
    Setting("adaptive_tick_budget_ms", _A + "TICK_BUDGET_MS", "clearing time of a tick; 0 is off", least=_ANY),
    Setting("adaptive_max_eq_per_tick", _A + "MAX_EQ_PER_TICK", "equivalents cleared in a tick; 0 is off", least=_ANY),
    Setting("clearing_enabled", "CLEARING_ENABLED", "master switch of clearing", Kind.SWITCH),
    Setting("routing_max_hops", "ROUTING_MAX_HOPS", "hops per route", least=1, most=64),
    Setting("routing_max_paths", "ROUTING_MAX_PATHS", "routes per payment", least=1, most=1000),
    Setting("routing_mode", "ROUTING_MODE", "how routes are found", Kind.WORD, words=RoutingMode),
    Setting("routing_timeout_ms", "ROUTING_PATH_FINDING_TIMEOUT_MS", "time limit of routing", least=1),
    Setting("prepare_timeout_sec", "PREPARE_TIMEOUT_SECONDS", "time limit of preparing", least=1, fixed=_ONE_STEP),
    Setting("commit_timeout_sec", "COMMIT_TIMEOUT_SECONDS", "time limit of committing", least=1, fixed=_ONE_STEP),
    Setting("payment_total_timeout_sec", "PAYMENT_TOTAL_TIMEOUT_SECONDS", "time limit of a payment", least=1),
    Setting("prepare_lock_ttl_sec", "PREPARE_LOCK_TTL_SECONDS", "life of a reservation", least=1, fixed=_ONE_STEP),
    Setting("actions_enable", _S + "ACTIONS_ENABLE", "manual actions", Kind.SWITCH),
)
BY_VARIABLE: Mapping[str, Setting] = {setting.variable: setting for setting in TABLE}
BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in TABLE}

_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings of a process; missing and empty variables take their defaults. Raises `InvalidSetting`."""
    values = {
        setting.name: parse_setting(setting, environment[setting.variable].strip())
        for setting in TABLE
        if environment.get(setting.variable, "").strip()
    }
    return check_settings(msgspec.structs.replace(Settings(), **values))


def change_settings(settings: Settings, values: Mapping[str, str]) -> Settings:
    """Settings with some values replaced, given as text by name or by variable; raises `InvalidSetting`."""
    parsed: dict[str, Any] = {}
    for key, value in values.items():
        setting = BY_NAME.get(key) or BY_VARIABLE.get(key)
        if setting is None:
            raise InvalidSetting.of(sorted(BY_NAME), {"kind": "unknown_setting", "variable": key, "value": value})
        parsed[setting.name] = parse_setting(setting, value.strip())
    return check_settings(msgspec.structs.replace(settings, **parsed))


def parse_setting(setting: Setting, text: str) -> Any:
    """The value of a text; raises `InvalidSetting` with the variable, the value and what is allowed."""
    value = _value(setting, text)
    default = getattr(Settings(), setting.name) if setting.fixed else value
    if value != default:
        facts: dict[str, Json] = {"kind": "without_effect", "variable": setting.variable, "value": text}
        raise InvalidSetting.of(str(default), {**facts, "reason": setting.fixed, "default": str(default)})
    return value


def _value(setting: Setting, text: str) -> Any:
    match setting.kind:
        case Kind.INTEGER:
            digits = text.removeprefix("-")
            if digits.isascii() and digits.isdigit() and len(digits) <= 30:
                number = int(text)
                if setting.least <= number <= setting.most:
                    return number
        case Kind.DECIMAL:
            try:
                # Decimal accepts digits of every script and underscores between them; reject both as typos.
                exact = Decimal(text if text.isascii() and "_" not in text else "nan")
            except InvalidOperation:
                exact = Decimal("nan")
            if _fits(setting, exact):
                return exact
        case Kind.SWITCH:
            if text.lower() in (*_ON, *_OFF):
                return text.lower() in _ON
        case Kind.WORD:
            if setting.words is not None and text.lower() in tuple(setting.words):
                return setting.words(text.lower())
        case Kind.AMOUNT:
            return _cap(setting, text)
    raise _refused(setting, text)


def _fits(setting: Setting, value: int | Decimal) -> bool:
    """Whether a number is in range and has at most 30 decimal places, which bounds the cost of exact arithmetic."""
    if isinstance(value, Decimal) and (not value.is_finite() or int(value.as_tuple().exponent) < -30):
        return False
    return setting.least <= value <= setting.most


def _cap(setting: Setting, text: str) -> int | None:
    """The cap in atoms, rounded down to the cent; None if there is none."""
    if text.lower() in ("none", "off"):
        return None
    try:
        amount = atoms(text, round_down=True)
    except InvalidAmount:
        raise _refused(setting, text) from None
    if amount < 0:
        raise _refused(setting, text)
    return amount // CENT * CENT


def _refused(setting: Setting, text: str) -> InvalidSetting:
    facts: dict[str, Json] = {"kind": "out_of_range", "variable": setting.variable, "value": cut(text)}
    return InvalidSetting.of(setting.allowed, {**facts, **setting.range})


def check_settings(settings: Settings) -> Settings:
    """The settings, if they are in range and consistent; raises `InvalidSetting` otherwise."""
    for setting in TABLE:
        value = getattr(settings, setting.name)
        number = setting.kind in (Kind.INTEGER, Kind.DECIMAL) and value is not None
        if number and not _fits(setting, value):
            raise _refused(setting, str(value))
    if settings.amount_cap is not None and (settings.amount_cap < 0 or settings.amount_cap % CENT):
        raise _refused(BY_NAME["amount_cap"], f"{settings.amount_cap} atoms")
    for low, high in (
        ("adaptive_max_depth_min", "adaptive_max_depth_max"),
        ("adaptive_time_budget_ms_min", "adaptive_time_budget_ms_max"),
        ("actions_per_tick_min", "actions_per_tick_max"),
    ):
        if (getattr(settings, low) or 0) > getattr(settings, high):
            raise _crossed(low, high, settings)
    if settings.adaptive_no_capacity_low >= settings.adaptive_no_capacity_high:
        raise _crossed("adaptive_no_capacity_low", "adaptive_no_capacity_high", settings)
    return settings


def _crossed(low: str, high: str, settings: Settings) -> InvalidSetting:
    least, most = BY_NAME[low], BY_NAME[high]
    values = getattr(settings, low), getattr(settings, high)
    facts: dict[str, Json] = {"kind": "crossed_settings", "variable": least.variable, "value": str(values[0])}
    return InvalidSetting.of(f"below {most.variable}", {**facts, "other": most.variable, "other_value": str(values[1])})


def setting_texts(settings: Settings) -> dict[str, str]:
    """Every setting as text by variable; empty if it is unset and has no default.

    As an environment, these texts give the same settings again.
    """
    return {setting.variable: _text(setting, getattr(settings, setting.name)) for setting in TABLE}


def differing_settings(settings: Settings, other: Settings) -> dict[str, tuple[str, str]]:
    """The variables that differ, each with both values as text."""
    left, right = setting_texts(settings), setting_texts(other)
    return {variable: (left[variable], right[variable]) for variable in left if left[variable] != right[variable]}


def _text(setting: Setting, value: Any) -> str:
    match value:
        case None:
            return "none" if setting.kind is Kind.AMOUNT else ""
        case bool():
            return "on" if value else "off"
        case StrEnum():
            return value.value
        case Decimal():
            # Without trailing zeros: a journal drops them.
            digits = format(value, "f")
            return digits.rstrip("0").rstrip(".") if "." in digits else digits
        case _:
            return amount_text(value) if setting.kind is Kind.AMOUNT else str(value)
