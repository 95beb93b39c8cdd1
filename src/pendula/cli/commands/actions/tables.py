"""What a run looks like on a terminal: a table of events an epoch, then what did not happen, then a summary."""

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from pendula.actions.events import End, Interrupted, Start, VisibilityChange, WorldEvent
from pendula.actions.model import Resume
from pendula.actions.runs import EpochResult, RunResult
from pendula.cli.output import table
from pendula.kernel.engine import Reason

COLUMNS = ("time", "event", "action", "actor", "what")
# Nobody reads more on a terminal; `--json` has everything.
MOST_SHOWN = 1000

AFTERWARDS = {
    Resume.AUTO: "",
    Resume.MANUAL: ", put aside",
    Resume.DROP: ", given up",
}


def drawn(result: RunResult) -> RenderableType:
    """All epochs below each other, and one line that sums them up."""
    parts: list[RenderableType] = []
    for epoch in result.epochs:
        parts += _epoch(epoch)
    parts.append(Text(_summary(result), style="bold"))
    return Group(*parts)


def reasoned(at: str, reason: Reason) -> RenderableType:
    """The sentence, and below it what it rests on."""
    tree = Tree(_line(f"{at}: {reason.sentence}"))
    _because(tree, reason)
    return tree


def _because(tree: Tree, reason: Reason) -> None:
    for one in reason.because:
        _because(tree.add(_line(one.sentence)), one)


def _epoch(epoch: EpochResult) -> Iterator[RenderableType]:
    header = epoch.header
    yield Text(f"Epoch {header.epoch}, {header.start_at} to {epoch.end_at}", style="bold")
    for one in header.carried_in:
        yield _line(f"goes on from before: {one['action_id']}, {one['remaining']} min left")
    if epoch.events:
        yield table(COLUMNS, [_cells(event) for event in epoch.events[:MOST_SHOWN]])
    else:
        yield Text("Nothing happens.\n")
    if len(epoch.events) > MOST_SHOWN:
        yield Text(f"… and {len(epoch.events) - MOST_SHOWN} more events; --json has them all\n")
    yield from _list("Rejected", [f"{one.action_id}: {one.message} ({one.code})" for one in epoch.rejections])
    yield from _list("Did not happen", [f"{one.message} ({one.code})" for one in epoch.diagnostics])
    yield from _list("Locks", list(_locks(epoch.locks)))


def _list(title: str, lines: Sequence[str]) -> Iterator[RenderableType]:
    if not lines:
        return
    yield Text(title, style="bold")
    for line in lines[:MOST_SHOWN]:
        yield _line(f"  {line}")
    if len(lines) > MOST_SHOWN:
        yield Text(f"  … and {len(lines) - MOST_SHOWN} more")
    yield Text("")


def _locks(rows: dict[str, Any]) -> Iterator[str]:
    """Locks that somebody has or waits for when the epoch is over."""
    for name, row in rows.items():
        if row["held_by"] or row["queue"]:
            held = f"held by {row['held_by']}" if row["held_by"] else "free"
            waiting = f", then {', '.join(row['queue'])}" if row["queue"] else ""
            yield f"{name}: {held}{waiting}"


def _cells(event: WorldEvent) -> Sequence[str]:
    told = (event.at[11:16], str(event.__struct_config__.tag), event.action_id, event.actor, _what(event))
    return [printable(cell) for cell in told]


def _what(event: WorldEvent) -> str:
    meta = event.meta
    match event:
        case Start():
            part = f", part {meta['segment'] + 1}" if meta["segment"] else ""
            waited = f", waited {meta['waited']} min" if meta["waited"] else ""
            return f"{event.verb} for {meta['d']} min{part}{waited}"
        case End():
            return f"{event.verb} is done"
        case Interrupted():
            return f"by {meta['by']}, {meta['d_rem']} min left{AFTERWARDS[meta['resume']]}"
        case VisibilityChange():
            return f"{meta['knowledge']}: {meta['from_scope']} → {meta['to_scope']}"
        case _:
            assert_never(event)


def _summary(result: RunResult) -> str:
    events = [event for epoch in result.epochs for event in epoch.events]
    rejected = sum(len(epoch.rejections) for epoch in result.epochs)
    running: Any = result.carry["running"]
    return ", ".join(
        (
            _many(len(result.epochs), "epoch"),
            _many(len(events), "event"),
            f"{sum(isinstance(event, End) for event in events)} ended",
            _many(sum(isinstance(event, Interrupted) for event in events), "interrupt"),
            f"{rejected} rejected",
            f"{len(running)} running on",
            f"{len(result.epochs[-1].deferred)} deferred",
        )
    )


def _line(text: str) -> Text:
    return Text(printable(text))


def printable(text: str) -> str:
    """Names come from a file; what a terminal would take for a command is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
