"""When the adaptive policy clears an equivalent, and how deep; every decision reads the whole history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

from tests.credit.oracle.knobs import Knobs

PREFIX = "SIMULATOR_CLEARING_ADAPTIVE_"


@dataclass(frozen=True)
class Decision:
    """The decision of the policy for one equivalent at one tick."""

    should_run: bool
    reason: str
    rate: Fraction | None = None
    depth: int | None = None
    budget_ms: int | None = None


@dataclass
class Policy:
    """One equivalent: signals (attempted, rejected for capacity) of all ticks so far, and the calls (tick, volume)."""

    knobs: Knobs
    signals: list[tuple[int, int]] = field(default_factory=list)
    calls: list[tuple[int, Fraction]] = field(default_factory=list)
    active: bool = False
    has_run: bool = False

    def number(self, name: str) -> int:
        return self.knobs.number(PREFIX + name)

    def ratio(self, name: str) -> Fraction:
        return self.knobs.ratio(PREFIX + name)

    def observe(self, attempted: int, rejected_no_capacity: int) -> None:
        """Record one tick; called before the decision of that tick."""
        self.signals.append((max(0, attempted), max(0, rejected_no_capacity)))

    def rate(self) -> Fraction:
        window = self.signals[-self.number("WINDOW_TICKS") :]
        attempted = sum(entry[0] for entry in window)
        return Fraction(sum(entry[1] for entry in window), attempted) if attempted else Fraction(0)

    def decide(self, tick: int) -> Decision:
        if len(self.signals) < self.number("WINDOW_TICKS"):
            return self.decide_cold(tick)
        rate, was_active = self.rate(), self.active
        if rate >= self.ratio("NO_CAPACITY_HIGH"):
            self.active = True
        elif rate < self.ratio("NO_CAPACITY_LOW"):
            self.active = False
        if not self.active:
            self.has_run = False
            if was_active or not self.has_its_turn(tick, self.knobs.number("SIMULATOR_CLEARING_EVERY_N_TICKS")):
                return Decision(False, "RATE_LOW_EXIT" if was_active else "SKIP_NOT_ACTIVE", rate)
        if self.is_cooling(tick):
            return Decision(False, "SKIP_MIN_INTERVAL", rate)
        if self.is_backing_off(tick):
            return Decision(False, "SKIP_BACKOFF", rate)
        if not self.active:
            hard = ("SIMULATOR_CLEARING_MAX_DEPTH", "SIMULATOR_REAL_CLEARING_TIME_BUDGET_MS")
            return Decision(True, "BACKGROUND_RUN", rate, *(self.knobs.number(name) for name in hard))
        return Decision(True, "RUN_ACTIVE" if self.has_run else "RATE_HIGH_ENTER", rate, *self.budgets(rate))

    def decide_cold(self, tick: int) -> Decision:
        cadence = self.number("WARMUP_FALLBACK_CADENCE")
        if cadence <= 0:
            return Decision(False, "WARMUP_DISABLED")
        if not self.has_its_turn(tick, cadence):
            return Decision(False, "WARMUP_FALLBACK_SKIP")
        if self.is_cooling(tick):
            return Decision(False, "SKIP_MIN_INTERVAL")
        if self.is_backing_off(tick):
            return Decision(False, "SKIP_BACKOFF")
        return Decision(True, "WARMUP_FALLBACK_RUN", None, *self.budgets(self.ratio("NO_CAPACITY_LOW")))

    def has_its_turn(self, tick: int, cadence: int) -> bool:
        return tick > 0 and cadence > 0 and tick % cadence == 0

    def is_cooling(self, tick: int) -> bool:
        return bool(self.calls) and tick - self.calls[-1][0] < self.number("MIN_INTERVAL_TICKS")

    def is_backing_off(self, tick: int) -> bool:
        return bool(self.calls) and tick - self.calls[-1][0] < self.interval()

    def interval(self) -> int:
        """Ticks to wait after the last call; doubles with each consecutive call that cleared nothing."""
        streak = 0
        for _, volume in reversed(self.calls):
            if volume >= Fraction(1, 10**9):
                break
            streak += 1
        if streak == 0:
            return 0
        return min(self.number("BACKOFF_MAX_INTERVAL_TICKS"), self.number("MIN_INTERVAL_TICKS") << streak - 1)

    def budgets(self, rate: Fraction) -> tuple[int, int]:
        """Depth and milliseconds for a rate."""
        low, high = self.ratio("NO_CAPACITY_LOW"), self.ratio("NO_CAPACITY_HIGH")
        pressure = Fraction(1) if high <= low else min(Fraction(1), max(Fraction(0), (rate - low) / (high - low)))
        return (
            self.scaled(pressure, "MAX_DEPTH", "SIMULATOR_CLEARING_MAX_DEPTH"),
            self.scaled(pressure, "TIME_BUDGET_MS", "SIMULATOR_REAL_CLEARING_TIME_BUDGET_MS"),
        )

    def scaled(self, pressure: Fraction, name: str, hard: str) -> int:
        least, most, ceiling = self.number(f"{name}_MIN"), self.number(f"{name}_MAX"), self.knobs.number(hard)
        raw = floor(least + pressure * (most - least))
        return max(1, min(max(raw, least), most, ceiling))

    def called(self, tick: int, volume: Fraction) -> None:
        self.calls.append((tick, volume))
        self.has_run = self.active


def adaptive_trace(
    settings: Mapping[str, str], signals: Sequence[tuple[int, int]], volumes: Sequence[Fraction]
) -> list[Decision]:
    """The decisions of one equivalent for signals (attempted, rejected) tick by tick; calls clear these volumes."""
    policy, left, decisions = Policy(Knobs(settings)), list(volumes), []
    for tick, (attempted, rejected) in enumerate(signals):
        policy.observe(attempted, rejected)
        decision = policy.decide(tick)
        decisions.append(decision)
        if decision.should_run:
            policy.called(tick, left.pop(0))
    return decisions
