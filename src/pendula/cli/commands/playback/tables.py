"""What a run or a player looks like on a terminal: items, exposure against its target, what went wrong, a summary."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from pendula.cli.output import table
from pendula.kernel.engine import Reason
from pendula.playback.model import WSUM, Item
from pendula.playback.player.loop import Appearance, Share, Showing
from pendula.playback.runs.script import RunResult

# Nobody reads more on a terminal; `--json` has everything.
MOST_SHOWN = 1000
BAR = 24


def drawn(result: RunResult) -> RenderableType:
    """The items, what the other calls gave, how much each channel got, and one line that sums it up."""
    parts: list[RenderableType] = []
    items: list[Any] = result.items
    if items:
        parts.append(table(("item", "id", "channel", "origin", "epoch"), [_item(one) for one in items[:MOST_SHOWN]]))
    else:
        parts.append(Text("Nothing is shown.\n"))
    if len(items) > MOST_SHOWN:
        parts.append(Text(f"… and {len(items) - MOST_SHOWN} more items; --json has them all\n"))
    calls: list[Any] = result.calls
    parts += _list("Other calls", [_call(call) for call in calls if call["call"] != "next"])
    stats: Mapping[str, Any] = result.stats
    # Weights are those of the last epoch, so only its items can be held against them.
    counts = Counter(item["channel"] for item in items if item["epoch_id"] == stats["epoch_id"])
    parts.append(Text(f"Exposure in epoch {stats['epoch_id']}", style="bold"))
    parts.append(exposed({name: (weight, counts[name]) for name, weight in stats["weights"].items()}))
    parts += _list("Diagnostics", [_diagnostic(one) for one in stats["diagnostics"]])
    parts.append(Text(_summary(items, stats), style="bold"))
    return Group(*parts)


def played(showing: Showing) -> RenderableType:
    """What was on when, how much each channel got, and one line that sums it up."""
    shown = list(showing.appearances)
    parts: list[RenderableType] = []
    if shown:
        rows = [_appearance(one) for one in shown[-MOST_SHOWN:]]
        parts.append(table(("at", "for", "channel", "file"), rows))
    else:
        parts.append(Text("Nothing was shown.\n"))
    exposure = showing.exposure()
    parts.append(exposed({name: (share.weight, share.shown) for name, share in exposure.items()}))
    parts.append(Text(_played(exposure, showing.seed), style="bold"))
    return Group(*parts)


def exposed(shares: Mapping[str, tuple[int, int]]) -> RenderableType:
    """Target against actual, by channel: the weight of 65536, and how many items there were."""
    whole = sum(count for _, count in shares.values())
    rows = [
        (printable(name), percent(weight, WSUM), percent(count, whole), str(count), bar(count, whole, weight))
        for name, (weight, count) in shares.items()
    ]
    return table(("channel", "target", "actual", "items", "actual, and ┃ the target"), rows)


def reasoned(item: Item, reason: Reason) -> RenderableType:
    """The sentence, and below it what it rests on, with the facts."""
    tree = Tree(_line(f"item {item.ordinal} of epoch {item.epoch_id} is {item.id}: {reason.sentence}"))
    _because(tree, reason)
    return tree


def percent(part: int, whole: int) -> str:
    """To a tenth, halves up; a dash where there is no whole."""
    if not whole:
        return "–"
    tenths = (2000 * part + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10} %"


def bar(part: int, whole: int, weight: int) -> str:
    """How much there was, and a mark where it should end."""
    filled = BAR * part // whole if whole else 0
    cells = ["█"] * filled + ["·"] * (BAR - filled)
    cells[min(BAR - 1, BAR * weight // WSUM)] = "┃"
    return "".join(cells)


def clock(ms: int) -> str:
    """Minutes, seconds, tenths; hours only where there are any."""
    seconds, rest = divmod(ms, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return (f"{hours}:{minutes:02}" if hours else f"{minutes}") + f":{seconds:02}.{rest // 100}"


def printable(text: str) -> str:
    """Names come from files; what a terminal would take for a command is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _because(tree: Tree, reason: Reason) -> None:
    for name, value in reason.facts.items():
        tree.add(_line(f"{name}: {_fact(value)}"))
    for one in reason.because:
        _because(tree.add(_line(one.sentence)), one)


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


def _summary(items: Sequence[Any], stats: Mapping[str, Any]) -> str:
    origins = Counter(item["origin"] for item in items)
    return ", ".join(
        (
            _many(len(items), "item"),
            f"{origins['nae']} of them new artwork",
            f"{stats['repeats']} repeated",
            f"epoch {stats['epoch_id']}",
            f"seed {stats['global_seed']}",
        )
    )


def _appearance(one: Appearance) -> Sequence[str]:
    file = f"(no file any more: {one.id})" if one.path is None else printable(one.path)
    return clock(one.started_ms), clock(one.ended_ms - one.started_ms), printable(one.channel or ""), file


def _played(exposure: Mapping[str, Share], seed: int) -> str:
    shown = sum(share.shown for share in exposure.values())
    ms = sum(share.ms for share in exposure.values())
    return f"{_many(shown, 'picture')} of {_many(len(exposure), 'channel')} in {clock(ms)}, seed {seed}"


def _list(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    if not lines:
        return
    yield Text(title, style="bold")
    for line in lines[:MOST_SHOWN]:
        yield _line(f"  {line}")
    if len(lines) > MOST_SHOWN:
        yield Text(f"  … and {len(lines) - MOST_SHOWN} more")
    yield Text("")


def _line(text: str) -> Text:
    return Text(printable(text))


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
