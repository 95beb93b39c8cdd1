"""The scheduler as a library: a programme behind one lock, safe for threads."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from secrets import randbits
from typing import Self

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason
from pendula.kernel.errors import WrongUsage
from pendula.playback import explain, saving
from pendula.playback.choosing.programme import Programme
from pendula.playback.choosing.records import Channel, MemoryShelf, Shelf, guarded, is_shelf
from pendula.playback.clocks import check_zone, minute_of_week, utc_ms
from pendula.playback.model import Diagnostic, InsertResult, Item, Record
from pendula.playback.settings import DEFAULTS, DayPart, Exposure, Nae, Pick, Refresh, Settings


class Reentered(WrongUsage):
    """A shelf called the scheduler that is reading it."""

    code = "reentered"


class Gate:
    """A reentrant lock that refuses calls from a shelf while it is read."""

    def __init__(self, programme: Programme) -> None:
        self.lock = threading.RLock()
        self._programme = programme

    def __enter__(self) -> None:
        self.lock.acquire()
        if self._programme.generating:
            self.lock.release()
            raise Reentered("A shelf must not call the scheduler that is reading it; return the row instead")

    def __exit__(self, *_: object) -> None:
        self.lock.release()


class Scheduler:
    """Selects the next item from up to 64 channels. Every call is atomic.

    Without a seed one is taken from the operating system; `stats()` shows it.
    """

    def __init__(
        self, channels: Sequence[Channel] = (), settings: Settings = DEFAULTS, *, seed: int | None = None
    ) -> None:
        check_zone(settings.zone)
        self._programme = Programme(channels, settings, seed=randbits(64) if seed is None else seed)
        self._lock = Gate(self._programme)

    @classmethod
    def from_state(cls, state: Json, channels: Iterable[Channel] = (), *, refresh: bool = False) -> Self:
        """Restore the scheduler that gave `state`; `channels` provide the records, which must be the same.

        With `refresh` channels and records may differ, which is one material change; none if nothing differs.
        """
        scheduler, given = cls.__new__(cls), list(channels)
        scheduler._programme = saving.load(
            state, saving.shelves_or_past(given) if refresh else saving.shelves_by_id(given)
        )
        if refresh:
            scheduler._programme.catch_up(given)
        scheduler._lock = Gate(scheduler._programme)
        return scheduler

    def state_dict(self) -> dict[str, Json]:
        """The complete state without records, as plain JSON values."""
        with self._lock:
            return saving.save(self._programme)

    @property
    def epoch_id(self) -> int:
        return self._programme.epoch_id

    @property
    def settings(self) -> Settings:
        return self._programme.snapshot.settings

    @property
    def channels(self) -> tuple[str, ...]:
        """The followed channels, in order."""
        return tuple(channel.id for channel in self._programme.snapshot.channels)

    def next(self) -> Item | None:
        with self._lock:
            return self._programme.next()

    def prev(self) -> Item | None:
        with self._lock:
            return self._programme.prev()

    def peek(self, n: int) -> list[Item]:
        with self._lock:
            return self._programme.peek(n)

    def take(self, n: int) -> list[Item]:
        """The results of `n` calls of `next`, up to the first None; generated together."""
        with self._lock:
            return self._programme.take(n)

    def now(self) -> Item | None:
        """The item that `next` or `prev` returned last."""
        with self._lock:
            return self._programme.now()

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        with self._lock:
            return self._programme.nae_insert(record)

    def reset(self, reason: str) -> None:
        with self._lock:
            self._programme.reset(reason)

    def follow(self, channel: str, records: Shelf | Iterable[Record]) -> None:
        """Follow a channel, with a shelf or with records to keep in memory."""
        shelf = _shelf(channel, records)
        with self._lock:
            self._programme.follow(channel, shelf)

    def unfollow(self, channel: str) -> None:
        with self._lock:
            self._programme.unfollow(channel)

    def refresh(self, channel: str, records: Shelf | Iterable[Record]) -> None:
        """Replace the contents of a channel; equal contents change nothing."""
        shelf = _shelf(channel, records)
        with self._lock:
            self._programme.refresh(channel, shelf)

    def ban(self, item: Item) -> None:
        """Ban an item until its channel gets other contents. Raises `NotShown`."""
        with self._lock:
            self._programme.ban(item)

    def show_next(self, record: Record | bytes) -> None:
        """Show this record next, once, before the lookahead. Raises `InvalidRecord`, `Banned`."""
        with self._lock:
            self._programme.show_next(record)

    def pause(self, channel: str) -> bool:
        """Pause a channel without a reset: its credit and cursor stay. Returns whether that changed anything."""
        with self._lock:
            return self._programme.pause(channel)

    def resume(self, channel: str) -> bool:
        """Resume a channel where it was paused. Returns whether that changed anything."""
        with self._lock:
            return self._programme.resume(channel)

    @property
    def paused(self) -> tuple[str, ...]:
        """The paused channels."""
        return self._programme.paused_channels

    def ban_artwork(self, id: int, until: datetime | None = None) -> None:
        """Ban an artwork in all channels until the ban is lifted or `clock` reaches `until`."""
        moment = None if until is None else utc_ms(until)
        with self._lock:
            self._programme.ban_artwork(id, moment)

    def lift(self, id: int) -> bool:
        """Lift a ban. Returns whether the artwork was banned."""
        with self._lock:
            return self._programme.lift(id)

    def clock(self, moment: datetime) -> None:
        """Set the time: ends bans and switches day parts. Raises `UnknownZone`."""
        now = utc_ms(moment)
        with self._lock:
            minute = minute_of_week(self._programme.snapshot.settings.zone, now)
            self._programme.expire(now)
            self._programme.time_is(minute)

    @property
    def day_part(self) -> str | None:
        """The day part that applies."""
        return self._programme.snapshot.part

    def configure(
        self,
        *,
        exposure: Exposure | None = None,
        pick: Pick | None = None,
        history: int | None = None,
        lookahead: int | None = None,
        nae: Nae | None = None,
        preserve_history: bool | None = None,
        refresh: Refresh | None = None,
        zone: str | None = None,
        day_parts: Sequence[DayPart] | None = None,
    ) -> None:
        """Change the given settings; equal values reset nothing."""
        if zone is not None:
            check_zone(zone)
        with self._lock:
            self._programme.configure(
                exposure=exposure,
                pick=pick,
                history=history,
                lookahead=lookahead,
                nae=nae,
                preserve_history=preserve_history,
                refresh=refresh,
                zone=zone,
                day_parts=day_parts,
            )

    @contextmanager
    def update(self) -> Iterator[None]:
        """Group changes into one reset; an exception rolls back. Other threads wait."""
        with self._lock, self._programme.update():
            yield

    def stats(self) -> dict[str, Json]:
        with self._lock:
            return explain.stats(self._programme)

    def diagnostics(self) -> list[Diagnostic]:
        """The last 64 diagnostics."""
        with self._lock:
            return list(self._programme.diagnostics)

    def why(self, item: Item) -> Reason:
        """Why the item was selected, with weights, credits, pool and draws at that moment."""
        with self._lock:
            return explain.why(self._programme, item)


def _shelf(channel: str, records: Shelf | Iterable[Record]) -> Shelf:
    """The shelf, or a shelf of the records; raises `NoShelf`."""
    if is_shelf(records) or not isinstance(records, Iterable):
        return guarded(channel, records)  # type: ignore[arg-type]
    return MemoryShelf(records)
