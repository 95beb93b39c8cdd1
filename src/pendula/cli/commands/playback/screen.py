"""The screen of a player as text: the current item, its remaining time, the lookahead and the exposure."""

from pathlib import PurePath

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from pendula.cli.commands.playback.tables import clock, exposed
from pendula.cli.text import printable
from pendula.playback.messages import View
from pendula.playback.player.slideshow import Slideshow

COMING = 5
KEYS = (
    "n next   p previous   space pause   1-5 pin   q quit\n"
    "b ban   x ban in all folders, u undo   c pause this folder, a resume all"
)
BAR = 40


def picture(slideshow: Slideshow) -> RenderableType:
    """The picture of a device, with lookahead, exposure and keys below."""
    parts: list[RenderableType] = [Panel(_on(slideshow), padding=(1, 2), width=72)]
    if coming := slideshow.coming(COMING):
        parts.append(Text("next: " + " · ".join(_name(slideshow, view) for view in coming), style="dim"))
    shares = slideshow.exposure()
    parts += [Text(""), exposed({name: (share.weight, share.shown) for name, share in shares.items()})]
    if slideshow.message is not None:
        parts.append(Text(printable(slideshow.message), style="yellow"))
    parts.append(Text(KEYS, style="dim"))
    return Group(*parts)


def line(slideshow: Slideshow) -> str:
    """The current item in one line, for a log."""
    view = slideshow.player.screen.item
    if view is None:
        return f"{clock(slideshow.player.now())}  (nothing)"
    at = clock(slideshow.player.screen.started_at)
    channel = view.channel or ("new" if view.ordinal else "pinned")
    return f"{at}  {printable(slideshow.name_of(view))}  ({printable(channel)}, {view.dwell_ms} ms)"


def _on(slideshow: Slideshow) -> RenderableType:
    screen = slideshow.player.screen
    view = screen.item
    if view is None:
        return Text("Nothing to show; waiting for new files.", style="dim")
    left = _left(slideshow)
    where = f"{printable(view.channel or 'new artwork')}, {view.origin}, item {view.ordinal} of epoch {view.epoch_id}"
    if not view.ordinal:
        where = "pinned, out of turn"
    state = "paused" if slideshow.player.paused else f"{clock(left)} left"
    filled = BAR * (view.dwell_ms - left) // view.dwell_ms
    return Group(
        Text(_name(slideshow, view), style="bold"),
        Text(where),
        Text(f"{'━' * filled}{'─' * (BAR - filled)} {state}"),
    )


def _left(slideshow: Slideshow) -> int:
    screen = slideshow.player.screen
    if screen.ends_at is not None:
        return screen.ends_at - slideshow.player.now()
    return screen.left_ms or 0


def _name(slideshow: Slideshow, view: View) -> str:
    return printable(PurePath(slideshow.name_of(view)).name)
