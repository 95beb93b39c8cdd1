"""`pendula playback play`: play folders of media on this terminal."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.cli.commands.playback.run import MqttOption, PlayerOption, address_of
from pendula.cli.output import JsonFlag, Output, example, tables_of
from pendula.cli.text import printable
from pendula.kernel.errors import WrongUsage
from pendula.playback.messages import DWELL_MS
from pendula.playback.model import MASK_64
from pendula.playback.settings import Mode, PickMode

if TYPE_CHECKING:
    from pendula.playback.player.slideshow import Slideshow
    from pendula.playback.settings import Exposure
    from pendula.playback.sources.mqtt import Address

DAY_MS = 86_400_000
DRAW_EVERY_MS = 200


def register(scheduler: typer.Typer) -> None:
    shown = example(
        "pendula playback play pictures/sea pictures/hills",
        "pendula playback play sea hills --weight sea=3 --weight hills=1 --fast --count 24 --json",
    )
    scheduler.command("play", epilog=shown)(play)


def play(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR…", help="Folders of media; each is a channel.")],
    mode: Annotated[
        Mode | None,
        typer.Option(help="Exposure of channels: equal, by --weight, or by size.", show_default="EqE"),
    ] = None,
    weight: Annotated[
        list[str] | None, typer.Option(metavar="NAME=W", help="The weight of a channel; may be repeated.")
    ] = None,
    dwell_ms: Annotated[
        int, typer.Option(metavar="N", min=1, max=DAY_MS, help="How long a picture stays, in milliseconds.")
    ] = DWELL_MS,
    pick: Annotated[PickMode, typer.Option(help="From the newest to the oldest, or random.")] = PickMode.RECENCY,
    seed: Annotated[
        int | None,
        typer.Option(metavar="S", min=0, max=MASK_64, help="Random seed.", show_default="random"),
    ] = None,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Stop after N pictures.", show_default="never")
    ] = None,
    fast: Annotated[bool, typer.Option("--fast", help="Simulate time instead of waiting. Requires --count.")] = False,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep cache files in this folder.", show_default="in memory")
    ] = None,
    rescan_s: Annotated[
        int, typer.Option(metavar="N", min=1, max=86_400, help="Seconds between two scans for new files.")
    ] = 30,
    mqtt: MqttOption = None,
    player: PlayerOption = None,
    json: JsonFlag = False,
) -> None:
    """Play folders of pictures, videos and sounds as a device would, with exact shares and without avoidable repeats.

    Keys: n next, p previous, space pause, q quit; 1 to 5 pin that item of the lookahead; b ban until the folder
    changes, x ban in all folders, u undo that; c pause the current folder, a resume all folders. With --json a
    document with the items shown, the exposure of each channel and the seed is printed at the end.
    """
    from secrets import randbits

    from pendula.playback.player.gallery import Galleries
    from pendula.playback.player.slideshow import APPEARANCES_KEPT, Slideshow
    from pendula.playback.settings import Pick, Settings

    if fast and count is None:
        raise WrongUsage("--fast would never end; pass --count N")
    if fast and mqtt is not None:
        raise WrongUsage("--fast does not wait for messages; omit --fast or --mqtt")
    source = address_of(mqtt, player)
    out = Output(json)
    galleries = Galleries(folders, cache)
    exposure = _exposure(mode, weight or (), [gallery.id for gallery in galleries])
    for diagnostic in galleries.open():
        out.note(f"pendula: {diagnostic.sentence} {diagnostic.facts.get('file', '')}".rstrip())
    # `prev` can go back across resets, which every new or banned file causes.
    settings = Settings(exposure, Pick(pick), preserve_history=True)
    slideshow = Slideshow(
        galleries,
        settings,
        seed=randbits(64) if seed is None else seed,
        dwell_ms=dwell_ms,
        count=count,
        remember=None if json or count is not None else APPEARANCES_KEPT,
    )
    if fast:
        _fast(slideshow, out)
    else:
        with _listening(slideshow, source, out):
            _live(slideshow, rescan_s * 1000, out)
    out.result(slideshow.as_json(), lambda: tables_of("playback").played(slideshow))


@contextmanager
def _listening(slideshow: "Slideshow", source: "tuple[Address, str] | None", out: Output) -> Iterator[None]:
    """Receive new artwork from a broker while the player runs."""
    if source is None:
        yield
        return
    from pendula.playback.sources.mqtt import Lost, MqttListener, News

    def tell(news: News) -> None:
        if isinstance(news, Lost):
            _note(out, f"No connection to the broker ({news.sentence}); next attempt in {news.wait_ms} ms.")

    address, player = source
    listener = MqttListener(slideshow, address.broker, address.prefix, player, tell=tell)
    listener.start()
    try:
        yield
    finally:
        listener.stop()


def _fast(slideshow: "Slideshow", out: Output) -> None:
    from pendula.playback.player.slideshow import VirtualPace, play

    slideshow.on_message = lambda sentence: _note(out, sentence)
    play(slideshow, VirtualPace())


def _live(slideshow: "Slideshow", look_every_ms: int, out: Output) -> None:
    from pendula.cli.commands.playback.terminal import LivePace, keys
    from pendula.playback.player.slideshow import play

    with keys() as keyboard, _display(slideshow, out) as draw:
        pace = LivePace(keyboard)
        try:
            play(
                slideshow,
                pace,
                look_every_ms=look_every_ms,
                draw=draw,
                draw_every_ms=None if draw is None else DRAW_EVERY_MS,
            )
        except KeyboardInterrupt:
            # The player's time stopped when the loop last woke up.
            slideshow.end(max(slideshow.player.now(), pace.now()))


@contextmanager
def _display(slideshow: "Slideshow", out: Output) -> "Iterator[Callable[[Slideshow], None] | None]":
    """Show the player on stderr: a screen on a terminal, else one line per picture."""
    from pendula.cli.commands.playback import tables

    if not sys.stderr.isatty():
        slideshow.on_shown = lambda slideshow: out.note(tables.line(slideshow))
        slideshow.on_message = lambda sentence: _note(out, sentence)
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True, highlight=False), auto_refresh=False, transient=True) as live:
        yield lambda slideshow: live.update(tables.picture(slideshow), refresh=True)


def _note(out: Output, sentence: str) -> None:
    out.note(f"pendula: {printable(sentence)}")


def _exposure(mode: Mode | None, weights: Sequence[str], names: Sequence[str]) -> "Exposure":
    """The exposure; weights without a mode imply manual exposure."""
    from pendula.playback.settings import Exposure

    by_name = dict(_weight(text, names) for text in weights)
    if by_name and mode not in (None, Mode.MAE):
        raise WrongUsage(f"--weight is for --mode {Mode.MAE.value}, not {mode}", mode=str(mode))
    return Exposure(mode or (Mode.MAE if by_name else Mode.EQE), by_name)


def _weight(text: str, names: Sequence[str]) -> tuple[str, Decimal]:
    from pendula.kernel.wording import suggestion
    from pendula.playback.settings import exact

    name, _, number = text.rpartition("=")
    if name not in names:
        known = ", ".join(names)
        raise WrongUsage(f"--weight {text}: unknown channel {name!r}{suggestion(name, names)}; there are {known}")
    try:
        weight = exact(Decimal(number))
    except InvalidOperation:
        weight = None
    if weight is None:
        raise WrongUsage(f"--weight {text}: {number!r} is not a number of at most 30 digits")
    return name, weight
