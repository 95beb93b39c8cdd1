"""A run or a player as tables: items, exposure against its target, diagnostics, a summary; the screen of a player."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from pendula.cli.output import reason_tree, table, titled_list
from pendula.cli.text import per_cent, printable
from pendula.kernel.engine import Reason
from pendula.kernel.wording import counted
from pendula.playback.messages import View
from pendula.playback.model import WSUM, Item
from pendula.playback.player.slideshow import Appearance, Share, Slideshow
from pendula.playback.runs.script import Summary

# More is not readable on a terminal; `--json` has everything.
MOST_SHOWN = 1000
BAR = 24
COMING = 5
KEYS = (
    "n next   p previous   space pause   1-5 pin   q quit\n"
    "b ban   x ban in all folders, u undo   c pause this folder, a resume all"
)
REMAINING = 40


def drawn(run: Summary) -> RenderableType:
    """The items, the answers of other calls, the exposure of each channel, and a summary line."""
    parts: list[RenderableType] = []
    if run.first:
        parts.append(table(("item", "id", "channel", "origin", "epoch"), [_item(one) for one in run.first]))
    else:
        parts.append(Text("No items.\n"))
    if run.total > len(run.first):
        parts.append(Text(f"… and {counted(run.total - len(run.first), 'more item')}; --json has them all\n"))
    parts += titled_list("Other calls", [_call(call) for call in run.calls if call["call"] != "next"], MOST_SHOWN)
    stats: Mapping[str, Any] = run.stats
    counts = run.channels if run.epoch_id == stats["epoch_id"] else Counter[str | None]()
    parts.append(Text(f"Exposure in epoch {stats['epoch_id']}", style="bold"))
    parts.append(exposed({name: (weight, counts[name]) for name, weight in stats["weights"].items()}))
    parts += titled_list("Diagnostics", [_diagnostic(one) for one in stats["diagnostics"]], MOST_SHOWN)
    parts.append(Text(_summary(run), style="bold"))
    return Group(*parts)


def played(slideshow: Slideshow) -> RenderableType:
    """The items shown with their times, the exposure of each channel, and a summary line."""
    shown = list(slideshow.appearances)
    parts: list[RenderableType] = []
    if shown:
        rows = [_appearance(one) for one in shown[-MOST_SHOWN:]]
        parts.append(table(("at", "for", "channel", "file"), rows))
    else:
        parts.append(Text("Nothing was shown.\n"))
    exposure = slideshow.exposure()
    parts.append(exposed({name: (share.weight, share.shown) for name, share in exposure.items()}))
    parts.append(Text(_played(exposure, slideshow.seed), style="bold"))
    return Group(*parts)


def exposed(shares: Mapping[str, tuple[int, int]]) -> RenderableType:
    """Target against actual by channel: the weight of 65536, and the number of items."""
    whole = sum(count for _, count in shares.values())
    rows = [
        (printable(name), per_cent(weight, WSUM), per_cent(count, whole), str(count), bar(count, whole, weight))
        for name, (weight, count) in shares.items()
    ]
    return table(("channel", "target", "actual", "items", "actual, and ┃ the target"), rows)


def reasoned(item: Item, reason: Reason) -> RenderableType:
    """The sentence, with its reasons and facts below."""
    head = f"item {item.ordinal} of epoch {item.epoch_id} is {item.id}: {reason.sentence}"
    return reason_tree(head, reason, _facts)


def bar(part: int, whole: int, weight: int) -> str:
    """The actual share, with a mark at the target."""
    filled = BAR * part // whole if whole else 0
    cells = ["█"] * filled + ["·"] * (BAR - filled)
    cells[min(BAR - 1, BAR * weight // WSUM)] = "┃"
    return "".join(cells)


def clock(ms: int) -> str:
    """Minutes, seconds, tenths; hours if there are any."""
    seconds, rest = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02}" if hours else f"{minutes}") + f":{seconds:02}.{rest // 100}"


def _facts(reason: Reason) -> Iterator[str]:
    return (f"{name}: {_fact(value)}" for name, value in reason.facts.items())


def _fact(value: Any) -> str:
    match value:
        case dict():
            return ", ".join(f"{name} {_fact(one)}" for name, one in value.items()) or "none"
        case list():
            return "; ".join(map(_fact, value)) or "none"
        case _:
            return str(value)


def _item(one: Any) -> Sequence[str]:
    channel = "" if one["channel"] is None else printable(one["channel"])
    return str(one["ordinal"]), str(one["id"]), channel, one["origin"], str(one["epoch_id"])


def _call(call: Mapping[str, Any]) -> str:
    if "items" in call:
        ids = ["none" if one is None else str(one["id"]) for one in call["items"][:MOST_SHOWN]]
        return f"{call['call']}: {', '.join(ids) or 'nothing'}"
    return f"{call['call']}: {_fact(call['result'])}"


def _diagnostic(one: Mapping[str, Any]) -> str:
    return f"{one['sentence']} ({one['code']}; {_fact(one['facts'])})"


def _summary(run: Summary) -> str:
    stats = run.stats
    return ", ".join(
        (
            counted(run.total, "item"),
            f"{run.origins['nae']} of them new artwork",
            f"{stats['repeats']} repeated",
            f"epoch {stats['epoch_id']}",
            f"seed {stats['global_seed']}",
        )
    )


def _appearance(one: Appearance) -> Sequence[str]:
    file = f"(file is gone: {one.id})" if one.path is None else printable(one.path)
    return clock(one.started_ms), clock(one.ended_ms - one.started_ms), printable(one.channel or ""), file


def _played(exposure: Mapping[str, Share], seed: int) -> str:
    shown = sum(share.shown for share in exposure.values())
    ms = sum(share.ms for share in exposure.values())
    return f"{counted(shown, 'picture')} of {counted(len(exposure), 'channel')} in {clock(ms)}, seed {seed}"


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
    filled = REMAINING * (view.dwell_ms - left) // view.dwell_ms
    return Group(
        Text(_name(slideshow, view), style="bold"),
        Text(where),
        Text(f"{'━' * filled}{'─' * (REMAINING - filled)} {state}"),
    )


def _left(slideshow: Slideshow) -> int:
    screen = slideshow.player.screen
    if screen.ends_at is not None:
        return screen.ends_at - slideshow.player.now()
    return screen.left_ms or 0


def _name(slideshow: Slideshow, view: View) -> str:
    return printable(PurePath(slideshow.name_of(view)).name)
