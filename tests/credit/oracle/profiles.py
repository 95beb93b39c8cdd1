"""Profiles: inheritance, defaults for absent or malformed values, presets by id."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tests.credit.oracle.money import exact, is_number
from tests.credit.oracle.world import World, code

# tx_rate, weights of groups, then p50, p90 and min as shares of the ceiling.
PRESETS: dict[str, tuple[float, dict[str, float], tuple[str, str, str]]] = {
    "anchor_hub": (0.02, {}, ("0.60", "0.93", "0.053")),
    "producer": (
        0.08,
        {"retail": 0.35, "services": 0.25, "households": 0.25, "anchors": 0.15},
        ("0.23", "0.73", "0.033"),
    ),
    "producer_large": (
        0.10,
        {"retail": 0.30, "services": 0.20, "households": 0.30, "anchors": 0.20},
        ("0.33", "0.87", "0.053"),
    ),
    "producer_small": (
        0.05,
        {"retail": 0.40, "services": 0.25, "households": 0.20, "anchors": 0.15},
        ("0.13", "0.40", "0.033"),
    ),
    "retail": (0.10, {"producers": 0.40, "anchors": 0.35, "services": 0.25}, ("0.33", "0.87", "0.033")),
    "service": (0.06, {"households": 0.45, "retail": 0.35, "anchors": 0.20}, ("0.20", "0.67", "0.033")),
    "household": (
        0.09,
        {"retail": 0.60, "services": 0.20, "producers": 0.10, "households": 0.10},
        ("0.12", "0.43", "0.033"),
    ),
    "household_active": (
        0.14,
        {"retail": 0.55, "services": 0.25, "producers": 0.10, "households": 0.10},
        ("0.19", "0.60", "0.033"),
    ),
    "household_frugal": (
        0.04,
        {"retail": 0.65, "services": 0.15, "producers": 0.10, "households": 0.10},
        ("0.08", "0.27", "0.033"),
    ),
    "agent": (0.04, {}, ("0.33", "0.87", "0.033")),
}


@dataclass
class Model:
    """How amounts of one equivalent are distributed; a preset holds shares of the ceiling instead of amounts."""

    min: Fraction | None = None
    max: Fraction | None = None
    p50: Fraction | None = None
    p90: Fraction | None = None
    shares: bool = False
    family: str = ""
    mean: Fraction | None = None
    sd: Fraction | None = None


@dataclass
class Profile:
    """The effective properties of a sender."""

    tx_rate: float = 1.0
    equivalent_weights: dict[str, float] | None = None
    group_weights: dict[str, float] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    preset_model: Model | None = None
    chains: list[tuple[str, str]] = field(default_factory=list)
    affinity: float | None = None
    periodicity: float = 1.0
    fixed_demand: bool = False
    base_p: dict[int, Fraction] = field(default_factory=dict)
    cluster_bias: float | None = None

    def model(self, equivalent: str) -> Model | None:
        return self.models.get(equivalent, self.preset_model)

    def acceptance(self, intensity: int) -> float:
        """Linear between two points, constant beyond the outermost ones."""
        if not self.base_p:
            return self.tx_rate
        held = min(max(intensity, min(self.base_p)), max(self.base_p))
        below = max(point for point in self.base_p if point <= held)
        above = min(point for point in self.base_p if point >= held)
        if below == above:
            return float(self.base_p[below])
        weight = Fraction(held - below, above - below)
        return float((1 - weight) * self.base_p[below] + weight * self.base_p[above])

    def weight(self, equivalent: str) -> float:
        """The factor of an equivalent on the acceptance rate."""
        if self.equivalent_weights is None:
            return 1.0
        largest = max(self.equivalent_weights.values(), default=0.0)
        return self.equivalent_weights.get(equivalent, 0.0) / largest if largest > 0 else 0.0


def given_props(world: World, profile_id: str) -> dict[str, Any]:
    """The props a scenario gives for a profile, inherited ones included; own values win key by key."""
    declared = {entry["id"]: entry for entry in world.scenario.get("behaviorProfiles", [])}
    if profile_id not in declared:
        return {}
    entry = declared[profile_id]
    inherited = given_props(world, entry["extends"]) if "extends" in entry else {}
    return {**inherited, **entry.get("props", {})}


def profile_of(world: World, who: str) -> Profile:
    profile_id = world.participants[who].profile
    if profile_id is None:
        return Profile()
    props = given_props(world, profile_id)
    profile = Profile()
    if profile_id in PRESETS and world.knobs.word("SIMULATOR_PROFILE_PRESETS") != "off":
        take_preset(profile, profile_id, props)
    for key, read in READERS.items():
        if key in props:
            read(profile, props[key])
    return profile


def take_preset(profile: Profile, profile_id: str, props: Mapping[str, Any]) -> None:
    """Fill in the keys that the scenario leaves out."""
    rate, groups, (p50, p90, least) = PRESETS[profile_id]
    if "tx_rate" not in props:
        profile.tx_rate = rate
    if "recipient_group_weights" not in props:
        profile.group_weights = dict(groups)
    if "amount_model" not in props:
        profile.preset_model = Model(min=exact(least), p50=exact(p50), p90=exact(p90), shares=True)


def read_rate(profile: Profile, value: Any) -> None:
    if is_number(value):
        profile.tx_rate = min(1.0, max(0.0, float(value)))


def read_equivalent_weights(profile: Profile, value: Any) -> None:
    weights = weights_in(value)
    if weights is not None:
        profile.equivalent_weights = {code(name): weight for name, weight in weights.items()}


def read_group_weights(profile: Profile, value: Any) -> None:
    profile.group_weights = weights_in(value) or {}


def weights_in(value: Any) -> dict[str, float] | None:
    if not isinstance(value, Mapping) or not all(is_number(weight) and weight >= 0 for weight in value.values()):
        return None
    return {name: float(weight) for name, weight in value.items()}


def read_models(profile: Profile, value: Any) -> None:
    if isinstance(value, Mapping):
        models = {code(name): model_in(entry) for name, entry in value.items()}
        profile.models = {name: model for name, model in models.items() if model is not None}


def model_in(entry: Any) -> Model | None:
    if not isinstance(entry, Mapping):
        return None
    known = {name: entry[name] for name in ("min", "max", "p50", "p90", "mean", "sd") if name in entry}
    family = entry.get("family")
    if family is not None and family not in ("lognormal", "normal", "triangular"):
        return None
    if not all(is_number(number) and number > 0 for number in known.values()):
        return None
    numbers = {name: exact(number) for name, number in known.items()}
    return Model(
        min=numbers.get("min"),
        max=numbers.get("max"),
        p50=numbers.get("p50"),
        p90=numbers.get("p90"),
        family=family or "",
        mean=numbers.get("mean"),
        sd=numbers.get("sd"),
    )


def read_chains(profile: Profile, value: Any) -> None:
    if isinstance(value, list) and all(is_chain(item) for item in value):
        profile.chains = [(item[0], item[1]) for item in value]


def is_chain(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(isinstance(group, str) for group in item)


def read_affinity(profile: Profile, value: Any) -> None:
    if is_number(value) and 0 <= value <= 1:
        profile.affinity = float(value)


def read_periodicity(profile: Profile, value: Any) -> None:
    if is_number(value) and value > 0:
        profile.periodicity = float(value)


def read_demand(profile: Profile, value: Any) -> None:
    profile.fixed_demand = value == "fixed"


def read_base_p(profile: Profile, value: Any) -> None:
    pairs = value if isinstance(value, list) else [[0, value]]
    points: dict[int, Fraction] = {}
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not is_number(pair[1]):
            return
        if not isinstance(pair[0], int) or isinstance(pair[0], bool) or not 0 <= pair[0] <= 100:
            return
        if any(pair[0] <= before for before in points):
            return
        points[pair[0]] = min(Fraction(1), max(Fraction(0), exact(pair[1])))
    profile.base_p = points


def read_cluster_bias(profile: Profile, value: Any) -> None:
    if is_number(value) and 0 <= value <= 1:
        profile.cluster_bias = float(value)


READERS: dict[str, Callable[[Profile, Any], None]] = {
    "tx_rate": read_rate,
    "equivalent_weights": read_equivalent_weights,
    "recipient_group_weights": read_group_weights,
    "amount_model": read_models,
    "flow_chains": read_chains,
    "flow_affinity": read_affinity,
    "periodicity_factor": read_periodicity,
    "demand": read_demand,
    "base_p": read_base_p,
    "cluster_bias": read_cluster_bias,
}
