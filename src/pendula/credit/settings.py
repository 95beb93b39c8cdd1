"""Every setting of a run, its variable, default and range; read from the environment once and validated.

A typo must never silently run a different experiment: an invalid value is refused with the variable, the value and the
allowed range.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Annotated, Any, Self, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from pendula.credit.money import CENT, InvalidAmount, atoms
from pendula.credit.money import text as amount_text
from pendula.credit.sentences import allowed_values, sentence_of
from pendula.kernel.canonical import Json
from pendula.kernel.errors import InputRefused
from pendula.kernel.wording import cut, suggestion

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


class Kind(StrEnum):
    INTEGER = "integer"
    DECIMAL = "decimal"
    SWITCH = "switch"
    AMOUNT = "amount"
    WORD = "word"


class Setting(Struct, frozen=True):
    """What a member of a struct of settings means and accepts; `table_of` adds name, variable and kind."""

    meaning: str
    prefix: str = "SIMULATOR_"
    least: int = 0
    most: int = NUMBER_MOST
    # Why only the default is accepted, as a key of `WITHOUT_EFFECT`: any other value would change nothing.
    fixed: str = ""
    name: str = ""
    variable: str = ""
    kind: Kind = Kind.INTEGER
    words: type[StrEnum] | None = None

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


def table_of(form: type[Struct]) -> tuple[Setting, ...]:
    """The settings of a struct in its order; a variable is the prefix and the name in capitals, unless it is given."""
    rows: list[Setting] = []
    for info in fields(form):
        plain, *marks = get_args(info.type) if get_origin(info.type) is Annotated else (info.type,)
        for mark in marks:
            if isinstance(mark, Setting):
                variable = mark.variable or mark.prefix + info.name.upper()
                kind, words = _kind_of(plain, mark.kind)
                rows.append(msgspec.structs.replace(mark, name=info.name, variable=variable, kind=kind, words=words))
    return tuple(rows)


def _kind_of(form: Any, numbers: Kind) -> tuple[Kind, type[StrEnum] | None]:
    if form is bool:
        return Kind.SWITCH, None
    if form is Decimal:
        return Kind.DECIMAL, None
    if isinstance(form, type) and issubclass(form, StrEnum):
        return Kind.WORD, form
    return numbers, None


_CLEARING = "SIMULATOR_CLEARING_"
_REAL = "SIMULATOR_REAL_"
_BARE = ""
_ONE_STEP = "one_step"
_ANY = -NUMBER_MOST  # zero and below switch it off


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The effective settings; times in milliseconds or seconds as their names say, the cap in atoms or None."""

    tick_ms_base: Annotated[int, Setting("virtual milliseconds per tick", least=1)] = 1000
    actions_per_tick_max: Annotated[int, Setting("budget at 100 %", most=1_000_000)] = 20
    actions_per_tick_min: Annotated[int, Setting("least budget above 0 %", most=1_000_000)] = 0
    fixed_seed: Annotated[
        int | None, Setting("seed when neither request nor scenario gives one", most=(1 << 64) - 1)
    ] = None
    work_units_per_ms: Annotated[int, Setting("examined edges that stand for a millisecond", least=1)] = 1000
    profile_presets: Annotated[bool, Setting("presets for the ten known profile ids")] = True
    amount_cap: Annotated[int | None, Setting("largest amount of a planned payment", _REAL, kind=Kind.AMOUNT)] = (
        3 * 10**8
    )
    max_in_flight: Annotated[
        int, Setting("calls to an outside payment service at the same time", _REAL, least=1, most=IN_FLIGHT_MOST)
    ] = 1
    max_payments_per_sec: Annotated[int, Setting("payments per second; 0 is off", least=_ANY)] = 0
    on_limit: Annotated[OnLimit, Setting("payments above the rate wait or are dropped")] = OnLimit.WAIT
    queue_max: Annotated[int, Setting("payments that may wait; the newest beyond it are dropped", most=1_000_000)] = (
        1000
    )
    max_timeouts_per_tick: Annotated[int, Setting("timeouts in a tick that end a run", _REAL, least=_ANY)] = 5
    max_errors_total: Annotated[int, Setting("technical errors that end a run", _REAL, least=_ANY)] = 200
    max_consec_tick_failures: Annotated[int, Setting("failed ticks in a row that end a run", _REAL, least=_ANY)] = 3
    payment_retries: Annotated[int, Setting("further attempts of a payment that timed out", most=100)] = 0
    stop_grace_sec: Annotated[int, Setting("seconds for payments in flight when a run stops", fixed="whole_ticks")] = 5
    enable_inject: Annotated[bool, Setting("inject events change the network", _REAL)] = False
    clearing_policy: Annotated[ClearingPolicy, Setting("when clearing is tried")] = ClearingPolicy.STATIC
    clearing_every_n_ticks: Annotated[int, Setting("cadence of static clearing; 0 is off", least=_ANY)] = 25
    clearing_max_depth: Annotated[int, Setting("most edges of a cleared cycle", least=1, most=64)] = 6
    clearing_time_budget_ms: Annotated[int, Setting("most time for one call", _REAL, least=1)] = 250
    clearing_hard_timeout_sec: Annotated[int, Setting("cap of the hard timeout of a call", _REAL)] = 8
    clearing_max_cycles_per_call: Annotated[int, Setting("cycles cleared in one call", least=1)] = 100
    clearing_mode: Annotated[ClearingMode, Setting("how debts are cleared")] = ClearingMode.CYCLES
    clearing_yardstick: Annotated[bool, Setting("compare each call with the optimum")] = False
    emit_clearing_plan: Annotated[bool, Setting("announce a clearing before it begins")] = True
    emit_tick_events: Annotated[bool, Setting("stream a debug event for each tick")] = False
    clearing_max_edges_for_fx: Annotated[int, Setting("most edges listed in cycle_edges")] = 30
    adaptive_window_ticks: Annotated[
        int, Setting("length of the rolling window", _CLEARING, least=1, most=1_000_000)
    ] = 30
    adaptive_no_capacity_high: Annotated[Decimal, Setting("rate that switches on", _CLEARING, most=1)] = Decimal("0.60")
    adaptive_no_capacity_low: Annotated[Decimal, Setting("rate that switches off", _CLEARING, most=1)] = Decimal("0.30")
    adaptive_min_interval_ticks: Annotated[int, Setting("ticks between two calls", _CLEARING, least=1)] = 5
    adaptive_backoff_max_interval_ticks: Annotated[int, Setting("ceiling of backoff", _CLEARING, least=1)] = 60
    adaptive_max_depth_min: Annotated[int | None, Setting("depth at low pressure", _CLEARING, least=1, most=64)] = None
    adaptive_max_depth_max: Annotated[int, Setting("depth at full pressure", _CLEARING, least=1, most=64)] = 6
    adaptive_time_budget_ms_min: Annotated[int, Setting("budget at low pressure", _CLEARING, least=1)] = 50
    adaptive_time_budget_ms_max: Annotated[int, Setting("budget at full pressure", _CLEARING, least=1)] = 250
    adaptive_inflight_threshold: Annotated[int, Setting("payments in flight; 0 is off", _CLEARING, least=_ANY)] = 0
    adaptive_queue_depth_threshold: Annotated[int, Setting("waiting actions; 0 is off", _CLEARING, least=_ANY)] = 0
    adaptive_warmup_fallback_cadence: Annotated[
        int | None,
        Setting("cadence while the window fills; 0 is off; the static cadence when not given", _CLEARING, least=_ANY),
    ] = None
    adaptive_tick_budget_ms: Annotated[int, Setting("clearing time of a tick; 0 is off", _CLEARING, least=_ANY)] = 0
    adaptive_max_eq_per_tick: Annotated[
        int, Setting("equivalents cleared in a tick; 0 is off", _CLEARING, least=_ANY)
    ] = 0
    clearing_enabled: Annotated[bool, Setting("master switch of clearing", _BARE)] = True
    routing_max_hops: Annotated[int, Setting("hops per route", _BARE, least=1, most=64)] = 6
    routing_max_paths: Annotated[int, Setting("routes per payment", _BARE, least=1, most=1000)] = 3
    routing_mode: Annotated[RoutingMode, Setting("how routes are found", _BARE)] = RoutingMode.GREEDY
    routing_timeout_ms: Annotated[
        int, Setting("time limit of routing", variable="ROUTING_PATH_FINDING_TIMEOUT_MS", least=1)
    ] = 500
    prepare_timeout_sec: Annotated[
        int, Setting("time limit of preparing", variable="PREPARE_TIMEOUT_SECONDS", least=1, fixed=_ONE_STEP)
    ] = 3
    commit_timeout_sec: Annotated[
        int, Setting("time limit of committing", variable="COMMIT_TIMEOUT_SECONDS", least=1, fixed=_ONE_STEP)
    ] = 5
    payment_total_timeout_sec: Annotated[
        int, Setting("time limit of a payment", variable="PAYMENT_TOTAL_TIMEOUT_SECONDS", least=1)
    ] = 10
    prepare_lock_ttl_sec: Annotated[
        int, Setting("life of a reservation", variable="PREPARE_LOCK_TTL_SECONDS", least=1, fixed=_ONE_STEP)
    ] = 30
    actions_enable: Annotated[bool, Setting("manual actions")] = False

    @property
    def least_depth(self) -> int:
        """The depth of the adaptive policy at the low threshold; by default that at the high threshold."""
        given = self.adaptive_max_depth_min
        return self.adaptive_max_depth_max if given is None else given

    @property
    def needs_solver(self) -> bool:
        return self.clearing_mode is ClearingMode.OPTIMAL or self.clearing_yardstick


TABLE = table_of(Settings)
BY_VARIABLE: Mapping[str, Setting] = {setting.variable: setting for setting in TABLE}
BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in TABLE}


def setting_called(key: str) -> Setting | None:
    """The setting of this name or variable."""
    return BY_NAME.get(key) or BY_VARIABLE.get(key)


def near_settings(key: str, *more: str) -> str:
    """What was probably meant by the name of no setting, as the end of a message."""
    return suggestion(key, [*more, *BY_NAME, *BY_VARIABLE])


_ON = ("1", "true", "yes", "on")
_OFF = ("0", "false", "no", "off")


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings of a process; missing and empty variables take their defaults. Raises `InvalidSetting`."""
    return check_settings(msgspec.structs.replace(Settings(), **given_values(TABLE, environment)))


def given_values(table: Sequence[Setting], environment: Mapping[str, str]) -> dict[str, Any]:
    """The values of the variables that are given and not empty, by name."""
    texts = {setting: environment.get(setting.variable, "").strip() for setting in table}
    return {setting.name: parse_setting(setting, text) for setting, text in texts.items() if text}


def change_settings(settings: Settings, values: Mapping[str, str]) -> Settings:
    """Settings with some values replaced, given as text by name or by variable; raises `InvalidSetting`."""
    parsed: dict[str, Any] = {}
    for key, value in values.items():
        setting = setting_called(key)
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
