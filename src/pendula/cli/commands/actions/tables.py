"""The output of a run on a terminal: events, rejections and diagnostics of each epoch, and a summary."""

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from rich.console import Group, RenderableType
from rich.text import Text

from pendula.actions.messages import End, Interrupted, Start, VisibilityChange, WorldEvent
from pendula.actions.model import Resume
from pendula.actions.runs.batch import AudioFile, EpochResult, RunResult
from pendula.cli.output import plain_line, reason_tree, table, titled_list
from pendula.cli.text import printable
from pendula.kernel.engine import Reason
from pendula.kernel.wording import counted

COLUMNS = ("time", "event", "action", "actor", "what")
# More is unreadable on a terminal; `--json` has everything.
MOST_SHOWN = 1000

AFTERWARDS = {
    Resume.AUTO: "",
    Resume.MANUAL: ", on hold",
    Resume.DROP: ", dropped",
}


def drawn(result: RunResult, audio: Sequence[AudioFile] | None = None) -> RenderableType:
    """All epochs, the names of audio files, and a summary line."""
    parts: list[RenderableType] = []
    for epoch in result.epochs:
        parts += _epoch(epoch)
    files = [f"{one.name}: {counted(len(one.events), 'event')}" for one in audio or ()]
    parts += titled_list("Audio", files, MOST_SHOWN)
    parts.append(Text(_summary(result), style="bold"))
    return Group(*parts)


def reasoned(at: str, reason: Reason) -> RenderableType:
    """The sentence, with its reasons below."""
    return reason_tree(f"{at}: {reason.sentence}", reason)


def _epoch(epoch: EpochResult) -> Iterator[RenderableType]:
    header = epoch.header
    yield Text(f"Epoch {header.epoch}, {header.start_at} to {epoch.end_at}", style="bold")
    for one in header.carried_in:
        yield plain_line(f"continued: {one['action_id']}, {one['remaining']} min left")
    if epoch.events:
        yield table(COLUMNS, [_cells(event) for event in epoch.events[:MOST_SHOWN]])
    else:
        yield Text("No events.\n")
    if len(epoch.events) > MOST_SHOWN:
        yield Text(f"… and {counted(len(epoch.events) - MOST_SHOWN, 'more event')}; --json has them all\n")
    yield from titled_list(
        "Rejected", [f"{one.action_id}: {one.message} ({one.code})" for one in epoch.rejections], MOST_SHOWN
    )
    yield from titled_list("No effect", [f"{one.message} ({one.code})" for one in epoch.diagnostics], MOST_SHOWN)
    yield from titled_list("Locks", list(_locks(epoch.locks)), MOST_SHOWN)


def _locks(rows: dict[str, Any]) -> Iterator[str]:
    """Locks with a holder or a queue at the end of the epoch."""
    for name, row in rows.items():
        if row["held_by"] or row["queue"]:
            held = f"held by {row['held_by']}" if row["held_by"] else "free"
            waiting = f", then {', '.join(row['queue'])}" if row["queue"] else ""
            yield f"{name}: {held}{waiting}"


def _cells(event: WorldEvent) -> Sequence[str]:
    cells = (event.at[11:16], str(event.__struct_config__.tag), event.action_id, event.actor, _what(event))
    return [printable(cell) for cell in cells]


def _what(event: WorldEvent) -> str:
    meta = event.meta
    match event:
        case Start():
            part = f", part {meta['segment'] + 1}" if meta["segment"] else ""
            waited = f", waited {meta['waited']} min" if meta["waited"] else ""
            return f"{event.verb} for {meta['d']} min{part}{waited}"
        case End():
            return f"{event.verb} is ended by force" if meta.get("forced") else f"{event.verb} is done"
        case Interrupted():
            return f"by {meta['by']}, {meta['d_rem']} min left{AFTERWARDS[meta['resume']]}"
        case VisibilityChange() if meta.get("reason"):
            return f"{meta['knowledge']}: {meta['reason']}, {meta['from_scope']} → {meta['to_scope']}"
        case VisibilityChange() if meta["knowledge"] == f"action:{event.action_id}":
            return f"{event.verb} becomes known: {meta['from_scope']} → {meta['to_scope']}"
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
            counted(len(result.epochs), "epoch"),
            counted(len(events), "event"),
            f"{sum(isinstance(event, End) for event in events)} ended",
            counted(sum(isinstance(event, Interrupted) for event in events), "interrupt"),
            f"{rejected} rejected",
            f"{len(running)} carried",
            f"{len(result.epochs[-1].deferred)} deferred",
        )
    )
