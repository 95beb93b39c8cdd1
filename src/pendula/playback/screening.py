"""The screen of a player: the current item, when it began and when it ends.

Time is in milliseconds since the player was created; only commands advance it.
"""

from base64 import b64encode

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.playback.choosing.programme import Programme
from pendula.playback.events import Blank, Event, Paused, Resumed, Shown, View
from pendula.playback.model import Item, invalid_parameter

DWELL_MOST = 86_400_000


class OnScreen(Struct, frozen=True):
    """The current item and its times; `left_ms` is set while the player is paused."""

    item: View | None
    started_at: int
    ends_at: int | None
    left_ms: int | None = None


class Screening:
    """A programme with a screen; `Player` adds the commands."""

    def __init__(self, programme: Programme, dwell_ms: int) -> None:
        self.programme = programme
        self.dwell_ms = dwell_of(dwell_ms)
        self.paused = False
        self.screen = OnScreen(None, 0, None)
        self._now = 0

    def show(self, item: Item | None, cause: str) -> tuple[tuple[Event, ...], Json]:
        if item is None:
            # Without a readable channel new artwork may still be selected: try again after the dwell time.
            left = self.dwell_ms if self.something_to_show() else None
            changed = self.screen.item is not None
            self.screen = self._on_screen(None, left)
            return ((Blank(self._now),) if changed else ()), None
        view = self.view(item)
        self.screen = self._on_screen(view, view.dwell_ms)
        return (Shown(view, self._now, self.screen.ends_at, cause),), msgspec.to_builtins(view)

    def _on_screen(self, view: View | None, left_ms: int | None) -> OnScreen:
        if self.paused or left_ms is None:
            return OnScreen(view, self._now, None, left_ms)
        return OnScreen(view, self._now, self._now + left_ms)

    def pause(self) -> tuple[tuple[Event, ...], Json]:
        if self.paused:
            return (), {"paused": True}
        ends_at = self.screen.ends_at
        self.paused = True
        left = None if ends_at is None else ends_at - self._now
        self.screen = msgspec.structs.replace(self.screen, ends_at=None, left_ms=left)
        return (Paused(self._now),), {"paused": True}

    def resume(self) -> tuple[tuple[Event, ...], Json]:
        if not self.paused:
            return (), {"paused": False}
        self.paused = False
        left = self.screen.left_ms
        ends_at = None if left is None else self._now + left
        self.screen = msgspec.structs.replace(self.screen, ends_at=ends_at, left_ms=None)
        self.wake()
        return (Resumed(self._now),), {"paused": False}

    def wake(self) -> None:
        """End a blank screen if there may be something to show now."""
        if self.paused or self.screen.item is not None:
            return
        programme = self.programme
        readable = bool(programme.pins or programme.lookahead or programme.generator.readable)
        if readable or (self.screen.ends_at is None and self.something_to_show()):
            self.screen = OnScreen(None, self._now, self._now)

    def something_to_show(self) -> bool:
        programme, generator = self.programme, self.programme.generator
        return bool(programme.pins or programme.lookahead or generator.readable or any(generator.pool))

    def view(self, item: Item) -> View:
        return View(
            id=item.id,
            channel=item.channel,
            origin=item.origin.value,
            epoch_id=item.epoch_id,
            ordinal=item.ordinal,
            ts=item.ts,
            kind=item.kind,
            format=item.format,
            flags=item.flags,
            dwell_ms=item.dwell_ms or self.dwell_ms,
            storage_key=b64encode(item.storage_key).decode(),
            payload=b64encode(item.payload).decode(),
            at=item.at,
        )


def dwell_of(value: int) -> int:
    if not 1 <= value <= DWELL_MOST:
        raise invalid_parameter("dwell_ms", value, 1, DWELL_MOST)
    return value
