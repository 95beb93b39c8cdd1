"""Settings as the oracle reads them: environment names to values, the rest at their defaults."""

from collections.abc import Mapping
from fractions import Fraction

from tests.credit.oracle.money import CENT, down_to, exact

DEFAULTS = {
    "SIMULATOR_TICK_MS_BASE": "1000",
    "SIMULATOR_ACTIONS_PER_TICK_MAX": "20",
    "SIMULATOR_ACTIONS_PER_TICK_MIN": "0",
    "SIMULATOR_PROFILE_PRESETS": "on",
    "SIMULATOR_REAL_AMOUNT_CAP": "3.00",
    "SIMULATOR_MAX_PAYMENTS_PER_SEC": "0",
    "SIMULATOR_ON_LIMIT": "wait",
    "SIMULATOR_QUEUE_MAX": "1000",
    "SIMULATOR_REAL_ENABLE_INJECT": "0",
    "SIMULATOR_CLEARING_POLICY": "static",
    "SIMULATOR_CLEARING_EVERY_N_TICKS": "25",
    "SIMULATOR_CLEARING_MAX_DEPTH": "6",
    "SIMULATOR_REAL_CLEARING_TIME_BUDGET_MS": "250",
    "SIMULATOR_CLEARING_MAX_CYCLES_PER_CALL": "100",
    "CLEARING_ENABLED": "true",
    "ROUTING_MAX_HOPS": "6",
    "ROUTING_MAX_PATHS": "3",
    "SIMULATOR_CLEARING_ADAPTIVE_WINDOW_TICKS": "30",
    "SIMULATOR_CLEARING_ADAPTIVE_NO_CAPACITY_HIGH": "0.60",
    "SIMULATOR_CLEARING_ADAPTIVE_NO_CAPACITY_LOW": "0.30",
    "SIMULATOR_CLEARING_ADAPTIVE_MIN_INTERVAL_TICKS": "5",
    "SIMULATOR_CLEARING_ADAPTIVE_BACKOFF_MAX_INTERVAL_TICKS": "60",
    "SIMULATOR_CLEARING_ADAPTIVE_MAX_DEPTH_MAX": "6",
    "SIMULATOR_CLEARING_ADAPTIVE_TIME_BUDGET_MS_MIN": "50",
    "SIMULATOR_CLEARING_ADAPTIVE_TIME_BUDGET_MS_MAX": "250",
    "SIMULATOR_CLEARING_ADAPTIVE_MAX_EQ_PER_TICK": "0",
    "SIMULATOR_CLEARING_ADAPTIVE_INFLIGHT_THRESHOLD": "0",
    "SIMULATOR_CLEARING_ADAPTIVE_QUEUE_DEPTH_THRESHOLD": "0",
}


class Knobs:
    """Settings by the name of their variable; names that the oracle does not use raise."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self.given = {**DEFAULTS, **{name: value for name, value in settings.items() if value != ""}}
        # The cadence of the cold start defaults to the static one,
        self.given.setdefault(
            "SIMULATOR_CLEARING_ADAPTIVE_WARMUP_FALLBACK_CADENCE", self.given["SIMULATOR_CLEARING_EVERY_N_TICKS"]
        )
        # and the least depth to the greatest.
        least, most = (f"SIMULATOR_CLEARING_ADAPTIVE_MAX_DEPTH_{end}" for end in ("MIN", "MAX"))
        self.given.setdefault(least, self.given[most])
        unknown = sorted(set(settings) - set(self.given))
        if unknown:
            raise AssertionError(f"the oracle has no settings {unknown}")

    def word(self, name: str) -> str:
        return self.given[name].strip().lower()

    def number(self, name: str) -> int:
        return int(self.given[name])

    def ratio(self, name: str) -> Fraction:
        return exact(self.given[name])

    def is_on(self, name: str) -> bool:
        return self.word(name) not in ("0", "false", "off", "no")

    def cap(self) -> Fraction | None:
        """The ceiling of every payment; None if there is none."""
        if self.word("SIMULATOR_REAL_AMOUNT_CAP") in ("none", "off"):
            return None
        return down_to(CENT, self.ratio("SIMULATOR_REAL_AMOUNT_CAP"))
