"""When clearing is worth trying: a rolling rate of payments refused for capacity, hysteresis, cooldown and backoff.

Pure and exact: rates and thresholds are compared as fractions. Every decision has a reason.
"""

from collections import deque
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

from msgspec import Struct

from pendula.credit.settings import Settings


class Why(StrEnum):
    """Why clearing was tried or not."""

    STATIC = "STATIC_CADENCE"
    MANUAL = "MANUAL"
    SCENARIO = "SCENARIO"
    WARMUP_FALLBACK_RUN = "WARMUP_FALLBACK_RUN"
    WARMUP_FALLBACK_SKIP = "WARMUP_FALLBACK_SKIP"
    WARMUP_DISABLED = "WARMUP_DISABLED"
    RATE_HIGH_ENTER = "RATE_HIGH_ENTER"
    RUN_ACTIVE = "RUN_ACTIVE"
    RATE_LOW_EXIT = "RATE_LOW_EXIT"
    BACKGROUND_RUN = "BACKGROUND_RUN"
    SKIP_NOT_ACTIVE = "SKIP_NOT_ACTIVE"
    SKIP_MIN_INTERVAL = "SKIP_MIN_INTERVAL"
    SKIP_BACKOFF = "SKIP_BACKOFF"
    SKIPPED_GUARDRAIL = "CLEARING_SKIPPED_GUARDRAIL"
    SKIPPED_MAX_EQ_PER_TICK = "CLEARING_SKIPPED_MAX_EQ_PER_TICK"
    SKIPPED_TICK_BUDGET = "CLEARING_SKIPPED_TICK_BUDGET"


class Decision(NamedTuple):
    """`wait` is the number of ticks until a call is allowed."""

    run: bool
    reason: Why
    rate: Fraction
    max_depth: int
    time_budget_ms: int
    wait: int


class Memory(Struct, frozen=True, forbid_unknown_fields=True):
    """The saved memory of the policy for one equivalent."""

    window: tuple[tuple[int, int], ...] = ()
    active: bool = False
    entered: bool = False
    last_call: int | None = None
    zero_streak: int = 0
    last_volume: int = 0
    last_cost_ms: int = 0


class AdaptivePolicy:
    """The adaptive policy for one equivalent."""

    def __init__(self, settings: Settings, memory: Memory | None = None) -> None:
        memory = Memory() if memory is None else memory
        self.settings = settings
        self.window: deque[tuple[int, int]] = deque(memory.window, maxlen=settings.adaptive_window_ticks)
        self._attempted = sum(attempted for attempted, _ in self.window)
        self._no_capacity = sum(rejected for _, rejected in self.window)
        self.active, self.entered = memory.active, memory.entered
        self.last_call, self.zero_streak = memory.last_call, memory.zero_streak
        self.last_volume, self.last_cost_ms = memory.last_volume, memory.last_cost_ms

    def memory(self) -> Memory:
        return Memory(
            window=tuple(self.window),
            active=self.active,
            entered=self.entered,
            last_call=self.last_call,
            zero_streak=self.zero_streak,
            last_volume=self.last_volume,
            last_cost_ms=self.last_cost_ms,
        )

    def observe(self, attempted: int, no_capacity: int) -> None:
        """Add the signals of one tick; negative ones count as 0."""
        fresh = max(0, attempted), max(0, no_capacity)
        gone = self.window[0] if len(self.window) == self.window.maxlen else (0, 0)
        self.window.append(fresh)
        self._attempted += fresh[0] - gone[0]
        self._no_capacity += fresh[1] - gone[1]

    def rate(self) -> Fraction:
        return Fraction(self._no_capacity, self._attempted) if self._attempted else Fraction(0)

    def decide(self, tick: int) -> Decision:
        """Check in this order: cold start, hysteresis, cooldown, backoff, run."""
        settings, rate = self.settings, self.rate()
        cooldown, backoff = self._waits(tick)
        if len(self.window) < settings.adaptive_window_ticks:
            return self._cold(tick, rate, cooldown, backoff)
        low = Fraction(settings.adaptive_no_capacity_low)
        was_active = self.active
        if rate >= Fraction(settings.adaptive_no_capacity_high):
            self.active = True
        elif rate < low:
            self.active = self.entered = False
        if not self.active and (was_active or not self._in_the_background(tick)):
            return self._skip(Why.RATE_LOW_EXIT if was_active else Why.SKIP_NOT_ACTIVE, rate, max(cooldown, backoff))
        if cooldown or backoff:
            return self._wait(rate, cooldown, backoff)
        if not self.active:
            ceilings = settings.clearing_max_depth, settings.clearing_time_budget_ms
            return Decision(True, Why.BACKGROUND_RUN, rate, *ceilings, 0)
        reason = Why.RUN_ACTIVE if self.entered else Why.RATE_HIGH_ENTER
        return Decision(True, reason, rate, *self._budgets(rate), 0)

    def called(self, tick: int, volume: int, cost_ms: int) -> None:
        """Record a finished call; a failed one has volume 0."""
        self.last_call, self.last_volume, self.last_cost_ms = tick, volume, cost_ms
        self.entered = self.active
        self.zero_streak = self.zero_streak + 1 if volume < 1 else 0

    def _in_the_background(self, tick: int) -> bool:
        """Whether the static cadence is due: a calm network is cleared as often as without a policy."""
        every = self.settings.clearing_every_n_ticks
        return every > 0 and tick > 0 and tick % every == 0

    def _cold(self, tick: int, rate: Fraction, cooldown: int, backoff: int) -> Decision:
        given = self.settings.adaptive_warmup_fallback_cadence
        cadence, wait = self.settings.clearing_every_n_ticks if given is None else given, max(cooldown, backoff)
        if cadence <= 0:
            return self._skip(Why.WARMUP_DISABLED, rate, wait)
        if tick == 0 or tick % cadence:
            return self._skip(Why.WARMUP_FALLBACK_SKIP, rate, wait)
        if wait:
            return self._wait(rate, cooldown, backoff)
        return Decision(True, Why.WARMUP_FALLBACK_RUN, rate, *self._least(), 0)

    def _waits(self, tick: int) -> tuple[int, int]:
        """Remaining ticks of cooldown and of backoff."""
        if self.last_call is None:
            return 0, 0
        settings, passed = self.settings, tick - self.last_call
        cooldown = max(0, settings.adaptive_min_interval_ticks - passed)
        if not self.zero_streak:
            return cooldown, 0
        # 60 doublings reach every ceiling; keep the shift small.
        grown = settings.adaptive_min_interval_ticks << min(self.zero_streak - 1, 60)
        return cooldown, max(0, min(settings.adaptive_backoff_max_interval_ticks, grown) - passed)

    def _wait(self, rate: Fraction, cooldown: int, backoff: int) -> Decision:
        """Skip a call that is due but not allowed yet."""
        reason = Why.SKIP_MIN_INTERVAL if cooldown else Why.SKIP_BACKOFF
        return self._skip(reason, rate, max(cooldown, backoff))

    def _skip(self, reason: Why, rate: Fraction, wait: int) -> Decision:
        return Decision(False, reason, rate, *self._least(), wait)

    def _least(self) -> tuple[int, int]:
        settings = self.settings
        return _clamped(settings, settings.least_depth, settings.adaptive_time_budget_ms_min)

    def _budgets(self, rate: Fraction) -> tuple[int, int]:
        """Depth and budget, growing with the rate between the two thresholds."""
        settings = self.settings
        low, high = Fraction(settings.adaptive_no_capacity_low), Fraction(settings.adaptive_no_capacity_high)
        pressure = min(max((rate - low) / (high - low), Fraction(0)), Fraction(1))
        depths = settings.least_depth, settings.adaptive_max_depth_max
        budgets = settings.adaptive_time_budget_ms_min, settings.adaptive_time_budget_ms_max
        depth = int(depths[0] + pressure * (depths[1] - depths[0]))
        budget = int(budgets[0] + pressure * (budgets[1] - budgets[0]))
        return _clamped(settings, depth, budget)


def _clamped(settings: Settings, depth: int, budget: int) -> tuple[int, int]:
    """A global ceiling is hard, even if it is below the adaptive minimum."""
    return max(1, min(depth, settings.clearing_max_depth)), max(1, min(budget, settings.clearing_time_budget_ms))


def is_guarded(settings: Settings, in_flight: int, queue_depth: int) -> bool:
    """Whether the load is too high to clear in this tick."""
    limits = settings.adaptive_inflight_threshold, settings.adaptive_queue_depth_threshold
    return any(limit > 0 and value > limit for limit, value in zip(limits, (in_flight, queue_depth), strict=True))


def hard_timeout_ms(budget_ms: int, cap_sec: int) -> int:
    """The upper bound on the duration of a call."""
    return max(100, min(max(2000, 4 * budget_ms), cap_sec * 1000))
