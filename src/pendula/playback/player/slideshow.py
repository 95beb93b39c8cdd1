"""The loop of a player: time, keys and new files in, pictures out.

It knows neither clock nor terminal. A `Pace` says how late it is and waits; the live one does so for a second a second,
`VirtualPace` is always there already. What is on, for how long, paused or banned is the engine's business alone.
"""

import threading
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Protocol

import msgspec
from msgspec import Struct

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from pendula.playback.engine import Player
from pendula.playback.events import (
    DWELL_MS,
    Advance,
    Ban,
    BanArtwork,
    Blank,
    Commands,
    Config,
    Diagnosed,
    Event,
    Insert,
    Lift,
    Next,
    Pause,
    PauseChannel,
    Prev,
    RecordCommand,
    Resume,
    ResumeChannel,
    Shown,
    ShowNext,
    Update,
    View,
)
from pendula.playback.model import InsertResult, Record, Settings
from pendula.playback.player.gallery import Galleries
from pendula.playback.sentences import sentence_of

REMEMBERED = 1000  # appearances of a player that runs on and on
PINNABLE = "12345"  # keys: show that one of what comes next


class Key(StrEnum):
    """What somebody before the screen can ask for."""

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
    """Time and keys. Milliseconds since the player began."""

    def now(self) -> int: ...

    def wait(self, until: int | None) -> str | None:
        """Wait; the key that was pressed meanwhile, or None when the time has come. None waits for a key alone."""
        ...


class VirtualPace:
    """Nobody waits: time jumps to where something happens. `keys` are pressed at their milliseconds, in order."""

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
            return Key.QUIT  # nothing can happen any more
        self._now = max(self._now, until)
        return None


class Appearance(Struct, frozen=True):
    """A picture that was on; `path` is None when its file is gone."""

    id: int
    channel: str | None
    path: str | None
    started_ms: int
    ended_ms: int


class Share(Struct, frozen=True):
    """What a channel should get, in 65536ths, and how often and how long it was on."""

    weight: int
    shown: int
    ms: int


class Slideshow:
    """A player before folders of media, and what it has shown. `count` ends it after so many pictures.

    `on_shown` is called for every picture that comes on, also for one that a late clock has passed over already;
    `on_said` for every sentence beside the pictures, unless it is the last one again.
    """

    def __init__(
        self,
        galleries: Galleries,
        settings: Settings,
        *,
        seed: int,
        dwell_ms: int = DWELL_MS,
        count: int | None = None,
        remember: int | None = REMEMBERED,
    ) -> None:
        # Held whenever the player is touched: new artwork comes from the thread of a listener.
        self.lock = threading.RLock()
        self.galleries = galleries
        self.seed = seed
        config = Config(seed, tuple(one.contents for one in galleries), counted(settings, galleries), dwell_ms)
        self.player = Player.create(msgspec.to_builtins(config))
        self.player.outside = galleries
        self.count = count
        self.over = count == 0
        self.said: str | None = None
        self.on_shown: Callable[[Slideshow], object] | None = None
        self.on_message: Callable[[str], object] | None = None
        self._last_message: str | None = None
        self.appearances: deque[Appearance] = deque(maxlen=remember)
        self._shown = 0
        self._by_channel: dict[str | None, tuple[int, int]] = {}
        self._on: tuple[View, int, str | None] | None = None

    @property
    def due(self) -> int | None:
        """When something happens by itself."""
        return None if self.over else self.player.next_due()

    @property
    def _full(self) -> bool:
        return self.count is not None and self._shown >= self.count

    def begin(self) -> None:
        if not self.over and self._apply(Next()).answer is None:
            self._notify("Nothing to show yet.")

    def advance(self, to: int) -> None:
        """Let time go on, picture by picture, so that the last one that was asked for ends when it should."""
        while not self.over:
            due = self.player.next_due()
            if due is None or due > to:
                self._apply(Advance(max(to, self.player.now())))
                return
            if self._full:
                self.end(due)
                return
            self._apply(Advance(due))

    def press(self, key: str) -> None:
        """Do what a key asks for; a key without meaning does nothing."""
        self.said = None
        match key:
            case Key.NEXT if self._full:
                self.end(self.player.now())
            case Key.NEXT:
                self._apply(Next())
            case Key.PREV:
                if self._apply(Prev()).answer is None:
                    self._notify("There is nothing before this.")
            case Key.PAUSE:
                self._apply(Resume() if self.player.paused else Pause())
            case Key.BAN:
                self._ban()
            case Key.NEVER | Key.LIFT:
                self._ban_artwork(lift=key == Key.LIFT)
            case Key.REST | Key.ALL:
                self._rest(resume_all=key == Key.ALL)
            case Key.QUIT:
                self.end(self.player.now())
            case _ if key in PINNABLE:
                self._pin_coming(int(key))

    def nae_insert(self, record: Record | bytes) -> InsertResult:
        """A new artwork, from any thread; it is among what is chosen next."""
        if isinstance(record, bytes):
            return InsertResult.REJECTED
        facts = {name: getattr(record, name) for name in RecordCommand.__struct_fields__}
        facts |= {name: b64encode(facts[name]).decode() for name in ("storage_key", "payload")}
        with self.lock:
            if self.over:
                return InsertResult.REJECTED
            answer = self._apply(Insert(**facts)).answer
        return InsertResult(answer["result"]) if isinstance(answer, dict) else InsertResult.REJECTED

    def rescan(self) -> None:
        """See what is in the folders now; a change begins a new epoch, and ends the bans of its channel."""
        refreshes, told = self.galleries.rescan()
        for one in told:
            self._notify(one.sentence)
        if refreshes:
            self._apply(Update(tuple(refreshes)))

    def end(self, at: int) -> None:
        """The screen goes dark."""
        self._record_appearance(at)
        self.over = True

    def coming(self, n: int) -> list[View]:
        return self.player.peek(n)

    def name_of(self, view: View) -> str:
        """The file of an item, or its number when the file is gone."""
        return self.galleries.path_of(view.channel, view.id) or f"(no file any more: {view.id})"

    def exposure(self) -> dict[str, Share]:
        """By channel, in the order of the folders; what is on now counts as far as it got."""
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
            # Numbers begin anew with an epoch: the same number is another picture now.
            self._notify("What is on is from before the last change of the channels; ban it when it comes again.")
            return
        if self._full:
            self.end(self.player.now())
            return
        self._apply(Ban())

    def _ban_artwork(self, *, lift: bool) -> None:
        """Never what is on again, from whatever folder; or the one that was banned last after all."""
        on, bans = self.player.screen.item, self.player.programme.bans
        if lift and bans:
            self._apply(Lift(list(bans)[-1]))
            self._notify("What was banned last comes again.")
        elif lift:
            self._notify("Nothing is banned from every folder.")
        elif on is not None:
            name = self.name_of(on)
            if self._full:
                self.end(self.player.now())
            elif self._apply(BanArtwork(on.id)).refusal is None:
                self._notify(f"{name} comes from no folder any more; u lets it come again.")

    def _rest(self, *, resume_all: bool) -> None:
        on = self.player.screen.item
        paused_channels = self.player.programme.paused_channels
        if resume_all:
            for channel in paused_channels:
                self._apply(ResumeChannel(channel))
            self._notify("Every folder plays." if paused_channels else "No folder rests.")
        elif on is None or on.channel is None:
            self._notify("What is on comes from no folder.")
        elif self._apply(PauseChannel(on.channel)).refusal is None:
            self._notify(f"{on.channel} rests; a lets every folder play again.")

    def _pin_coming(self, number: int) -> None:
        coming = self.coming(number)
        if len(coming) < number:
            self._notify(f"Only {len(coming)} pictures are chosen already.")
            return
        view = coming[-1]
        record = {name: getattr(view, name) for name in RecordCommand.__struct_fields__ if hasattr(view, name)}
        if self._apply(ShowNext(**record)).refusal is None:
            self._notify(f"{self.name_of(view)} comes next.")

    def _apply(self, command: Commands) -> Outcome[Event]:
        outcome = self.player.apply(command)
        if outcome.refusal is not None:
            self._notify(sentence_of(outcome.refusal.code, outcome.refusal.facts))
        for event in outcome.events:
            match event:
                case Shown(item, started_at):
                    self._record_appearance(started_at)
                    self._on = (item, started_at, self.galleries.path_of(item.channel, item.id))
                    self._shown += 1
                    if self.on_shown is not None:
                        self.on_shown(self)
                case Blank(at):
                    self._record_appearance(at)
                case Diagnosed(_, facts):
                    self._notify(f"{facts['channel']}: {event.message}" if "channel" in facts else event.message)
        return outcome

    def _notify(self, sentence: str) -> None:
        self.said = sentence
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
    """Show until it is over: the count is reached, somebody quits, or nothing can happen any more."""
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
    """The settings with the size of each folder, for proportional exposure; nothing in a folder counts as recent."""
    totals = {gallery.id: gallery.total for gallery in galleries}
    exposure = msgspec.structs.replace(settings.exposure, total_count=totals, recent_count=dict.fromkeys(totals, 0))
    return msgspec.structs.replace(settings, exposure=exposure)
