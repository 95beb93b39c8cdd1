"""The loop of a player: time, keys and new files in, pictures out.

It has neither clock nor terminal: a `Pace` gives the time and waits; `VirtualPace` jumps. The engine decides what is
shown and for how long.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from pendula.playback import messages
from pendula.playback.engine import Player
from pendula.playback.messages import DWELL_MS, Commands, Config, Event, RecordCommand, View
from pendula.playback.model import InsertResult, Record
from pendula.playback.player.gallery import Galleries
from pendula.playback.sentences import sentence_of
from pendula.playback.settings import Settings

APPEARANCES_KEPT = 1000  # of a player without an end
PINNABLE = "12345"  # keys: pin that item of the lookahead


class Key(StrEnum):
    """The keys of a viewer."""

    NEXT = "n"
    PREV = "p"
    PAUSE = " "
    BAN = "b"
    NEVER = "x"
    LIFT = "u"
    REST = "c"
    ALL = "a"
    QUIT = "q"


class Pace(Protocol):
    """Time and keys. Milliseconds since the player started."""

    def now(self) -> int: ...

    def wait(self, until: int | None) -> str | None:
        """Wait until a time or a key, which is returned; with None only for a key."""
        ...


class VirtualPace:
    """Time jumps to the next event. `keys` are pressed at their milliseconds, in order."""

    def __init__(self, keys: Iterable[tuple[int, str]] = ()) -> None:
        self._keys = deque(keys)
        self._now = 0

    def now(self) -> int:
        return self._now

    def wait(self, until: int | None) -> str | None:
        if self._keys and (until is None or self._keys[0][0] <= until):
            at, key = self._keys.popleft()
            self._now = max(self._now, at)
            return key
        if until is None:
            return Key.QUIT  # nothing is due any more
        self._now = max(self._now, until)
        return None


class Appearance(Struct, frozen=True):
    """A picture that was shown; `path` is None if its file is gone."""

    id: int
    channel: str | None
    path: str | None
    started_ms: int
    ended_ms: int


class Share(Struct, frozen=True):
    """The weight of a channel, of 65536, and how often and how long it was shown."""

    weight: int
    shown: int
    ms: int


class Slideshow:
    """A player of folders of media, and what it has shown. `count` ends it after that many pictures.

    `on_shown` is called for every picture, also if the clock is late and it has ended already; `on_message` for every
    message that differs from the previous one.
    """

    def __init__(
        self,
        galleries: Galleries,
        settings: Settings,
        *,
        seed: int,
        dwell_ms: int = DWELL_MS,
        count: int | None = None,
        remember: int | None = APPEARANCES_KEPT,
    ) -> None:
        # Held for every access to the player: new artwork arrives on the thread of a listener.
        self.lock = threading.RLock()
        self.galleries = galleries
        self.seed = seed
        config = Config(seed, tuple(one.contents for one in galleries), counted(settings, galleries), dwell_ms)
        self.player = Player.create(msgspec.to_builtins(config))
        self.player.outside = galleries
        self.count = count
        self.over = count == 0
        self.message: str | None = None
        self.on_shown: Callable[[Slideshow], object] | None = None
        self.on_message: Callable[[str], object] | None = None
        self._last_message: str | None = None
        self.appearances: deque[Appearance] = deque(maxlen=remember)
        self._shown = 0
        self._by_channel: dict[str | None, tuple[int, int]] = {}
        self._on: tuple[View, int, str | None] | None = None

    @property
    def due(self) -> int | None:
        """When the next change is due."""
        return None if self.over else self.player.next_due()

    @property
    def _full(self) -> bool:
        return self.count is not None and self._shown >= self.count

    def begin(self) -> None:
        if not self.over and self._apply(messages.Next()).answer is None:
            self._notify("Nothing to show yet.")

    def advance(self, to: int) -> None:
        """Advance time picture by picture, so that the last picture of `count` ends on time."""
        while not self.over:
            due = self.player.next_due()
            if due is None or due > to:
                self._apply(messages.Advance(max(to, self.player.now())))
                return
            if self._full:
                self.end(due)
                return
            self._apply(messages.Advance(due))

    def press(self, key: str) -> None:
        """Handle a key; unknown keys are ignored."""
        self.message = None
        match key:
            case Key.NEXT if self._full:
                self.end(self.player.now())
            case Key.NEXT:
                self._apply(messages.Next())
            case Key.PREV:
                if self._apply(messages.Prev()).answer is None:
                    self._notify("This is the oldest item of the history.")
            case Key.PAUSE:
                self._apply(messages.Resume() if self.player.paused else messages.Pause())
            case Key.BAN:
                self._ban()
            case Key.NEVER | Key.LIFT:
                self._ban_artwork(lift=key == Key.LIFT)
            case Key.REST | Key.ALL:
                self._pause_folder(resume_all=key == Key.ALL)
            case Key.QUIT:
                self.end(self.player.now())
            case _ if key in PINNABLE:
                self._pin_coming(int(key))

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        """Insert a new artwork. Thread-safe."""
        if isinstance(record, bytes):
            return InsertResult.REJECTED
        with self.lock:
            if self.over:
                return InsertResult.REJECTED
            answer = self._apply(messages.Insert.of(record)).answer
        return InsertResult(answer["result"]) if isinstance(answer, dict) else InsertResult.REJECTED

    def rescan(self) -> None:
        """Scan the folders again; a change begins a new epoch and clears the bans of its channel."""
        refreshes, diagnostics = self.galleries.rescan()
        for diagnostic in diagnostics:
            self._notify(diagnostic.sentence)
        if refreshes:
            self._apply(messages.Update(tuple(refreshes)))

    def end(self, at: int) -> None:
        """End the slideshow."""
        self._record_appearance(at)
        self.over = True

    def coming(self, n: int) -> list[View]:
        return self.player.peek(n)

    def name_of(self, view: View) -> str:
        """The file of an item, or its id if the file is gone."""
        return self.galleries.path_of(view.channel, view.id) or f"(file is gone: {view.id})"

    def exposure(self) -> dict[str, Share]:
        """By channel, in the order of the folders; includes the elapsed time of the current item."""
        generator = self.player.programme.generator
        shares: dict[str, Share] = {}
        for name, weight in zip(generator.names, generator.weights, strict=True):
            shown, ms = self._by_channel.get(name, (0, 0))
            if self._on is not None and self._on[0].channel == name:
                shown, ms = shown + 1, ms + self.player.now() - self._on[1]
            shares[name] = Share(weight, shown, ms)
        return shares

    def as_json(self) -> dict[str, Json]:
        """The public form."""
        return {
            "seed": self.seed,
            "shown": [msgspec.to_builtins(one) for one in self.appearances],
            "exposure": {name: msgspec.to_builtins(share) for name, share in self.exposure().items()},
        }

    def _ban(self) -> None:
        on = self.player.screen.item
        if on is not None and on.epoch_id != self.player.programme.epoch_id:
            # Ordinals restart with an epoch: the same ordinal is another picture now.
            self._notify("This picture is from before the last change of the channels; ban it when it is shown again.")
            return
        if self._full:
            self.end(self.player.now())
            return
        self._apply(messages.Ban())

    def _ban_artwork(self, *, lift: bool) -> None:
        """Ban the current artwork in all folders, or lift the latest ban."""
        on, bans = self.player.screen.item, self.player.programme.bans
        if lift and bans:
            self._apply(messages.Lift(list(bans)[-1]))
            self._notify("Lifted the latest ban.")
        elif lift:
            self._notify("Nothing is banned in all folders.")
        elif on is not None:
            name = self.name_of(on)
            if self._full:
                self.end(self.player.now())
            elif self._apply(messages.BanArtwork(on.id)).refusal is None:
                self._notify(f"{name} is banned in all folders; u lifts the ban.")

    def _pause_folder(self, *, resume_all: bool) -> None:
        on = self.player.screen.item
        paused_channels = self.player.programme.paused_channels
        if resume_all:
            for channel in paused_channels:
                self._apply(messages.ResumeChannel(channel))
            self._notify("All folders play." if paused_channels else "No folder is paused.")
        elif on is None or on.channel is None:
            self._notify("This picture belongs to no folder.")
        elif self._apply(messages.PauseChannel(on.channel)).refusal is None:
            self._notify(f"{on.channel} is paused; a resumes all folders.")

    def _pin_coming(self, number: int) -> None:
        coming = self.coming(number)
        if len(coming) < number:
            self._notify(f"The lookahead has only {len(coming)} pictures.")
            return
        view = coming[-1]
        record = {name: getattr(view, name) for name in RecordCommand.__struct_fields__ if hasattr(view, name)}
        if self._apply(messages.ShowNext(**record)).refusal is None:
            self._notify(f"{self.name_of(view)} is next.")

    def _apply(self, command: Commands) -> Outcome[Event]:
        outcome = self.player.apply(command)
        if outcome.refusal is not None:
            self._notify(sentence_of(outcome.refusal.code, outcome.refusal.facts))
        for event in outcome.events:
            match event:
                case messages.Shown(item, started_at):
                    self._record_appearance(started_at)
                    self._on = (item, started_at, self.galleries.path_of(item.channel, item.id))
                    self._shown += 1
                    if self.on_shown is not None:
                        self.on_shown(self)
                case messages.Blank(at):
                    self._record_appearance(at)
                case messages.Diagnosed(_, facts):
                    self._notify(f"{facts['channel']}: {event.message}" if "channel" in facts else event.message)
        return outcome

    def _notify(self, sentence: str) -> None:
        self.message = sentence
        if self.on_message is not None and sentence != self._last_message:
            self._last_message = sentence
            self.on_message(sentence)

    def _record_appearance(self, at: int) -> None:
        if self._on is None:
            return
        view, since, path = self._on
        self._on = None
        shown, ms = self._by_channel.get(view.channel, (0, 0))
        self._by_channel[view.channel] = shown + 1, ms + at - since
        self.appearances.append(Appearance(view.id, view.channel, path, since, at))


def play(
    slideshow: Slideshow,
    pace: Pace,
    *,
    look_every_ms: int | None = None,
    draw: Callable[[Slideshow], object] | None = None,
    draw_every_ms: int | None = None,
) -> None:
    """Run until the count is reached, the viewer quits, or nothing is due any more."""
    with slideshow.lock:
        slideshow.begin()
    look_at = look_every_ms
    while not slideshow.over:
        with slideshow.lock:
            if draw is not None:
                draw(slideshow)
            now, due = pace.now(), slideshow.due
        draw_at = None if draw_every_ms is None else now + draw_every_ms
        key = pace.wait(min((at for at in (due, look_at, draw_at) if at is not None), default=None))
        with slideshow.lock:
            now = pace.now()
            slideshow.advance(now)
            if look_at is not None and look_every_ms is not None and now >= look_at and not slideshow.over:
                slideshow.rescan()
                look_at = now + look_every_ms
            if key is not None and not slideshow.over:
                slideshow.press(key)


def counted(settings: Settings, galleries: Galleries) -> Settings:
    """The settings with the size of each folder, for proportional exposure; its recent count is 0."""
    totals = {gallery.id: gallery.total for gallery in galleries}
    exposure = msgspec.structs.replace(settings.exposure, total_count=totals, recent_count=dict.fromkeys(totals, 0))
    return msgspec.structs.replace(settings, exposure=exposure)
