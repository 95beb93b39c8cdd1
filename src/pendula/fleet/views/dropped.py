"""The last dropped report of a truck, for answers about the truck."""

from msgspec import Struct

from pendula.kernel.canonical import Json


class LastDropped(Struct, frozen=True):
    """Why a report was dropped, when by the clock of the fleet, and its own time; None if it was malformed."""

    code: str
    now_ms: int
    at_ms: int | None

    @property
    def ahead_ms(self) -> int | None:
        """How far the report is ahead of the fleet; negative if it is behind."""
        return None if self.at_ms is None else self.at_ms - self.now_ms

    def form(self) -> Json:
        """In the names of the contract."""
        return {"code": self.code, "nowMs": self.now_ms, "reportMs": self.at_ms, "aheadMs": self.ahead_ms}
