"""The last report of a truck that was dropped, as answers about the truck have it."""

from msgspec import Struct

from pendula.kernel.canonical import Json


class LastDropped(Struct, frozen=True):
    """Why a report was dropped, when, by the clock of the fleet, and what time it had; null where it is malformed."""

    code: str
    now_ms: int
    at_ms: int | None

    @property
    def ahead_ms(self) -> int | None:
        """By how much the report is ahead of the fleet; below 0 it is behind."""
        return None if self.at_ms is None else self.at_ms - self.now_ms

    def form(self) -> Json:
        """In the names of the contract."""
        return {"code": self.code, "nowMs": self.now_ms, "reportMs": self.at_ms, "aheadMs": self.ahead_ms}
