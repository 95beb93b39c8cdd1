"""Behaviour of participants: props of profiles completed with presets, invalid values replaced by defaults."""

from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from typing import Any

from msgspec import Struct

from pendula.credit.model import Profile
from pendula.credit.money import ATOMS, MOST
from pendula.kernel.canonical import Json

FIXED = "fixed"
DEMANDS = ("capped", FIXED)
AMOUNTS = ("min", "max", "p50", "p90", "mean", "sd")


class Family(StrEnum):
    """The distribution of an amount."""

    LOGNORMAL = "lognormal"
    NORMAL = "normal"
    TRIANGULAR = "triangular"


class Model(Struct, frozen=True):
    """How large amounts are in one equivalent: bounds in atoms, percentiles as they enter the draw.

    With `shares`, all of them are parts of the ceiling of the payment, in thousandths (min) and as factors. `family`
    says how amounts are drawn; without one, the percentiles say it.
    """

    min: int | None = None
    max: int | None = None
    p50: float | None = None
    p90: float | None = None
    shares: bool = False
    family: Family | None = None
    mean: float | None = None
    deviation: float | None = None


class Behaviour(Struct, frozen=True):
    """A profile as the planner uses it. `models` None means that no amounts are modelled."""

    tx_rate: float = 1.0
    weights: Mapping[str, float] | None = None
    groups: tuple[tuple[str, float], ...] = ()
    models: Mapping[str, Model] = {}
    preset_model: Model | None = None
    chains: tuple[tuple[str, str], ...] = ()
    affinity: float | None = None
    periodicity: float = 1.0
    fixed_demand: bool = False  # the demand ignores the ledger
    base_p: tuple[tuple[int, Fraction], ...] = ()  # (intensity, acceptance) pairs, ascending; replaces the rate
    cluster_bias: float | None = None  # probability that the receiver is in the sender's group

    def rate(self, intensity: int) -> float:
        """The probability of acceptance at this intensity, interpolated linearly between the given points."""
        if not self.base_p:
            return self.tx_rate
        before, p = self.base_p[0]
        for percent, after in self.base_p:
            if intensity <= percent:
                share = Fraction(intensity - before, percent - before) if before < intensity else Fraction(0)
                return float(p + (after - p) * share)
            before, p = percent, after
        return float(p)

    def model(self, equivalent: str) -> Model | None:
        return self.models.get(equivalent, self.preset_model)

    def weight(self, equivalent: str) -> float:
        """The weight relative to the largest one; 0 for codes without a weight."""
        if self.weights is None:
            return 1.0
        most = max(self.weights.values(), default=0.0)
        return self.weights.get(equivalent, 0.0) / most if most > 0 else 0.0


PLAIN = Behaviour()


class Preset(Struct, frozen=True):
    """Rates and amounts of a preset; amounts are fractions of the ceiling, the smallest in thousandths."""

    tx_rate: float
    groups: tuple[tuple[str, float], ...]
    p50: float
    p90: float
    min: int


def _preset(rate: str, groups: str, p50: str, p90: str, least: int) -> Preset:
    weights = tuple(
        sorted((name, float(weight)) for name, weight in (part.split() for part in groups.split(",") if part))
    )
    return Preset(float(rate), weights, float(p50), float(p90), least)


PRESETS: Mapping[str, Preset] = {
    "anchor_hub": _preset("0.02", "", "0.60", "0.93", 53),
    "producer": _preset("0.08", "retail .35,services .25,households .25,anchors .15", "0.23", "0.73", 33),
    "producer_large": _preset("0.10", "retail .30,services .20,households .30,anchors .20", "0.33", "0.87", 53),
    "producer_small": _preset("0.05", "retail .40,services .25,households .20,anchors .15", "0.13", "0.40", 33),
    "retail": _preset("0.10", "producers .40,anchors .35,services .25", "0.33", "0.87", 33),
    "service": _preset("0.06", "households .45,retail .35,anchors .20", "0.20", "0.67", 33),
    "household": _preset("0.09", "retail .60,services .20,producers .10,households .10", "0.12", "0.43", 33),
    "household_active": _preset("0.14", "retail .55,services .25,producers .10,households .10", "0.19", "0.60", 33),
    "household_frugal": _preset("0.04", "retail .65,services .15,producers .10,households .10", "0.08", "0.27", 33),
    "agent": _preset("0.04", "", "0.33", "0.87", 33),
}


def behaviour(profile: str | None, profiles: Mapping[str, Profile], presets: bool) -> Behaviour:
    """The behaviour of a participant with this profile; an unknown profile has default behaviour."""
    preset = PRESETS.get(profile or "") if presets else None
    given = profiles[profile].props if profile is not None and profile in profiles else {}
    if not given and preset is None:
        return PLAIN
    usual = _usual(preset)

    def value(key: str, malformed: Any, absent: Any) -> Any:
        if key not in given:
            return absent
        parsed = PROPS_READ[key](given[key])
        return malformed if parsed is None else parsed

    return Behaviour(
        tx_rate=value("tx_rate", 1.0, usual.tx_rate),
        weights=value("equivalent_weights", None, None),
        groups=value("recipient_group_weights", (), usual.groups),
        models=value("amount_model", {}, {}),
        preset_model=None if "amount_model" in given else usual.preset_model,
        chains=value("flow_chains", (), ()),
        affinity=value("flow_affinity", None, None),
        periodicity=value("periodicity_factor", 1.0, 1.0),
        fixed_demand=value("demand", False, False),
        base_p=value("base_p", (), ()),
        cluster_bias=value("cluster_bias", None, None),
    )


def _usual(preset: Preset | None) -> Behaviour:
    if preset is None:
        return PLAIN
    model = Model(preset.min, None, preset.p50, preset.p90, shares=True)
    return Behaviour(preset.tx_rate, None, preset.groups, {}, model)


def number(value: Any) -> float | None:
    """A finite number as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    try:
        result = float(value)
    except (OverflowError, ValueError):
        return None
    return result if isfinite(result) else None


def _positive(value: Json) -> float | None:
    result = number(value)
    return result if result is not None and result > 0 else None


def _not_negative(value: Json) -> float | None:
    result = number(value)
    return result if result is not None and result >= 0 else None


def _clamped(value: Json) -> float | None:
    result = number(value)
    return None if result is None else min(max(result, 0.0), 1.0)


def _share(value: Json) -> float | None:
    result = number(value)
    return result if result is not None and 0 <= result <= 1 else None


def _fixed(value: Json) -> bool | None:
    """Whether a `demand` is fixed; None if it is invalid."""
    return value == FIXED if value in DEMANDS else None


def _points(value: Json) -> tuple[tuple[int, Fraction], ...] | None:
    """Acceptance by intensity: one number for all, or pairs [per cent, acceptance] in ascending order."""
    pairs = value if isinstance(value, list | tuple) else [[0, value]]
    result: list[tuple[int, Fraction]] = []
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return None
        percent, p = pair
        if number(p) is None or not isinstance(p, int | Decimal):
            return None
        if type(percent) is not int or not 0 <= percent <= 100 or (result and percent <= result[-1][0]):
            return None
        result.append((percent, min(max(Fraction(p), Fraction(0)), Fraction(1))))
    return tuple(result) or None


def _weight_map(value: Json) -> dict[str, float] | None:
    """A map of non-negative numbers; None if any value is invalid."""
    if not isinstance(value, dict):
        return None
    weights = {str(name): _not_negative(weight) for name, weight in value.items()}
    return (
        None if None in weights.values() else {name: weight for name, weight in weights.items() if weight is not None}
    )


def _weights(value: Json) -> dict[str, float] | None:
    weights = _weight_map(value)
    return None if weights is None else {code.strip().upper(): weight for code, weight in weights.items()}


def _groups(value: Json) -> tuple[tuple[str, float], ...] | None:
    weights = _weight_map(value)
    return None if weights is None else tuple(sorted((name, weight) for name, weight in weights.items() if weight > 0))


def _chains(value: Json) -> tuple[tuple[str, str], ...] | None:
    if not isinstance(value, list | tuple):
        return None
    chains = []
    for item in value:
        if not isinstance(item, list | tuple) or len(item) != 2 or not all(isinstance(end, str) for end in item):
            return None
        chains.append((str(item[0]), str(item[1])))
    return tuple(chains)


def _models(value: Json) -> dict[str, Model] | None:
    if not isinstance(value, dict):
        return None
    models = {code.strip().upper(): amount_model(model) for code, model in value.items()}
    return {code: model for code, model in models.items() if model is not None}


def amount_model(value: Json) -> Model | None:
    """None if any part is invalid: an entry counts as a whole or not at all."""
    if not isinstance(value, dict):
        return None
    numbers: dict[str, Any] = {name: value[name] for name in AMOUNTS if name in value}
    family = value.get("family")
    if any(_positive(entry) is None for entry in numbers.values()) or family not in (None, *Family):
        return None
    least, most = numbers.get("min"), numbers.get("max")
    return Model(
        min=None if least is None else _scaled(least, up=True),
        max=None if most is None else _scaled(most, up=False),
        p50=_positive(numbers["p50"]) if "p50" in numbers else None,
        p90=_positive(numbers["p90"]) if "p90" in numbers else None,
        family=None if family is None else Family(family),
        mean=_positive(numbers["mean"]) if "mean" in numbers else None,
        deviation=_positive(numbers["sd"]) if "sd" in numbers else None,
    )


# Reads each prop; None if its value is invalid.
PROPS_READ: Mapping[str, Callable[[Json], object]] = {
    "tx_rate": _clamped,
    "equivalent_weights": _weights,
    "recipient_group_weights": _groups,
    "amount_model": _models,
    "flow_chains": _chains,
    "flow_affinity": _share,
    "periodicity_factor": _positive,
    "demand": _fixed,
    "base_p": _points,
    "cluster_bias": _share,
}


def _scaled(value: int | Decimal, *, up: bool) -> int:
    """Atoms, rounded up or down; too large amounts are clamped beyond the maximum."""
    if value > MOST:
        return MOST + 1
    numerator, denominator = Decimal(value).as_integer_ratio()
    return -(-numerator * ATOMS // denominator) if up else numerator * ATOMS // denominator
