"""What a run counts, and when the counts end it."""

from msgspec import Struct

from pendula.credit.events import LastError
from pendula.credit.model import Code
from pendula.credit.settings import Settings
from pendula.kernel.canonical import Json


class Counters(Struct, forbid_unknown_fields=True):
    """Each attempt counts once, as committed, rejected or an error; a timeout counts as an error, too."""

    attempts_total: int = 0
    committed_total: int = 0
    rejected_total: int = 0
    errors_total: int = 0
    timeouts_total: int = 0
    dropped_total: int = 0

    def count(self, code: Code | None) -> None:
        """Count one finished attempt; None is a committed one."""
        self.attempts_total += 1
        if code is None:
            self.committed_total += 1
        elif code is Code.PAYMENT_TIMEOUT:
            self.errors_total += 1
            self.timeouts_total += 1
        elif code is Code.INTERNAL_ERROR:
            self.errors_total += 1
        else:
            self.rejected_total += 1


class Demand(Struct, forbid_unknown_fields=True):
    """Demand of planned payments of a run in one equivalent, in atoms.

    `wanted` is the demand before the ledger capped it, `served` the paid part of it. `volume` is everything that was
    paid, including payments that replace those of payers without capacity.
    """

    wanted: int = 0
    served: int = 0
    volume: int = 0


def too_many(counters: Counters, timeouts_in_tick: int, settings: Settings) -> LastError | None:
    """The error that ends the run: too many timeouts in a tick, or too many errors in all."""
    if 0 < settings.max_timeouts_per_tick <= timeouts_in_tick:
        facts: dict[str, Json] = {"timeouts": timeouts_in_tick, "limit": settings.max_timeouts_per_tick}
        return LastError(Code.PAYMENT_TIMEOUT.value, facts)
    if 0 < settings.max_errors_total <= counters.errors_total:
        facts = {"errors": counters.errors_total, "limit": settings.max_errors_total}
        return LastError(Code.INTERNAL_ERROR.value, {"kind": "REAL_MODE_TOO_MANY_ERRORS", **facts})
    return None


def too_many_failed_ticks(failed: int, settings: Settings) -> LastError | None:
    if 0 < settings.max_consec_tick_failures <= failed:
        facts: dict[str, Json] = {"failed_ticks": failed, "limit": settings.max_consec_tick_failures}
        return LastError(Code.INTERNAL_ERROR.value, {"kind": "REAL_MODE_TICK_FAILED", **facts})
    return None
