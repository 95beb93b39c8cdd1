"""The whole picture: title, legend, a panel an epoch."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any, Protocol

from pendula import svg
from pendula.actions.gantt import marks
from pendula.actions.gantt.panel import BAR, RIGHT, Panel, Scale
from pendula.actions.gantt.rows import natural_order, shortened, text_width
from pendula.actions.gantt.spans import Day, History, Kind, Span, history_of
from pendula.actions.saving import saved_in
from pendula.kernel.canonical import Json
from pendula.kernel.time import format_iso, plus_minutes
from pendula.kernel.wording import counted

WIDTH = 1200
MOST_EPOCHS = 14
MOST_NAMED = 24
LEAST_SLOTS = 4
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Label and shape of each sign in the legend.
SIGNS = {
    Kind.WAIT: ("waits for a lock", svg.box(0, 3, 22, BAR - 6, "wait")),
    Kind.ASIDE: ("on hold", svg.line(1, 7, 21, 7, "aside")),
    "bolt": ("interrupted, by", marks.bolt(12, BAR)),
    "light": ("revealed", marks.diamond(11, 7, True)),
    "dim": ("revealed, not to the player", marks.diamond(11, 7, False)),
    "edge": ("continues in another epoch", marks.bar(0, 0, 22, BAR, "bar v8", from_before=True, goes_on=True)),
    "queue": ("queue of a lock", svg.box(0, 6, 22, 4, "queue")),
    "cross": ("no effect", marks.cross(11, 7)),
}


class Run(Protocol):
    """A run to draw, with the carry after its last epoch."""

    @property
    def epochs(self) -> Sequence[Day]: ...
    @property
    def carry(self) -> Mapping[str, Json]: ...


def gantt_svg(
    result: Run,
    action_defs: Mapping[str, Any],
    *,
    slots: int = 24,
    title: str = "Actions",
    most_epochs: int = MOST_EPOCHS,
) -> str:
    """The run as one SVG, 1200 pixels wide; `action_defs` and `slots` are those of the file it came from."""
    history = history_of(result.epochs, saved_in(result.carry), action_defs)
    return drawn(history, slots, title, most_epochs)


def drawn(history: History, slots: int, title: str, most_epochs: int = MOST_EPOCHS) -> str:
    """The picture of a history."""
    verbs = sorted({span.verb for span in history.spans})
    colours = {verb: place % marks.COLOURS for place, verb in enumerate(verbs)}
    parts = [marks.words(16, 30, shortened(title, WIDTH - 32, 17), "h1")]
    parts.append(marks.words(16, 50, _summary(history), "soft"))
    y = _legend(parts, history, colours, 72)
    since, until = _window(history, history.minutes // slots)
    for number in range(min(history.epochs, most_epochs)):
        scale = Scale(number * history.minutes, since, until, history.minutes // slots)
        panel = Panel(history, scale, colours, y + 14)
        panel.draw(_day(history, number))
        parts += panel.parts
        y = panel.y + 8
    if history.epochs > most_epochs:
        parts.append(
            marks.words(16, y + 20, f"Not drawn: {counted(history.epochs - most_epochs, 'more epoch')}.", "soft")
        )
        y += 24
    return _document(parts, y + 16, title, _summary(history))


def _document(parts: list[str], height: float, title: str, summary: str) -> str:
    head = svg.opening(WIDTH, height, f"{title}: {summary}")
    # No title element for the whole: it would be the tooltip of every shape without one.
    body = "\n".join(part for part in parts if part)
    paper = svg.box(0, 0, WIDTH, height, "paper")
    return f"{head}\n<style>{marks.STYLE}</style>\n{marks.HATCH}\n{paper}\n{body}\n</svg>\n"


def _summary(history: History) -> str:
    count = history.counts
    first = format_iso(history.start)[:10]
    last = format_iso(plus_minutes(history.start, history.minutes * history.epochs - 1))[:10]
    days = first if first == last else f"{first} to {last}"
    return (
        f"{counted(history.epochs, 'epoch')}, {days} · {counted(count['started'], 'action')} started, "
        f"{count['ended']} ended, {counted(count['interrupted'], 'interrupt')}, {count['revealed']} revealed, "
        f"{count['rejected']} rejected, {count['carried']} carried over"
    )


def _day(history: History, number: int) -> str:
    start = format_iso(plus_minutes(history.start, number * history.minutes))
    day = date.fromisoformat(start[:10])
    return f"Epoch {history.first_epoch + number} · {DAYS[day.weekday()]}, {start[:10]}"


def _window(history: History, slot: int) -> tuple[int, int]:
    """The slots with any events in any epoch; one window for all panels, so that they can be compared."""
    moments = {mark.minute % history.minutes for mark in history.marks}
    for span in history.spans:
        if _epochs(span, history) > 1:
            return 0, history.minutes
        moments |= {span.since % history.minutes, span.until % history.minutes or history.minutes}
    if not moments:
        return 0, history.minutes
    since = min(moments) // slot
    until = max(-(-max(moments) // slot), since + LEAST_SLOTS)
    last = history.minutes // slot
    if until > last:
        since, until = max(last - (until - since), 0), last
    return since * slot, until * slot


def _legend(parts: list[str], history: History, colours: Mapping[str, int], y: float) -> float:
    """The legend of the colours and signs that occur; returns its lower edge."""
    named = sorted(colours.items(), key=lambda pair: natural_order(pair[0]))[:MOST_NAMED]
    entries = [(verb, svg.box(0, 0, 22, BAR, f"bar v{place}", 3)) for verb, place in named]
    if len(colours) > MOST_NAMED:
        entries.append((f"and {len(colours) - MOST_NAMED} more verbs", ""))
    signs = [sign for what, sign in SIGNS.items() if what in _occurring(history)]
    for group in (entries, signs):
        x = 16.0
        for name, drawn in group:
            label = shortened(name, 320)
            wide = 28 + text_width(label) + 16
            if x + wide > RIGHT:
                x, y = 16.0, y + 20
            place = f"translate({svg.number(x)} {svg.number(y)})"
            parts.append(f'<g transform="{place}">{drawn}{marks.words(27, 11, label)}</g>')
            x += wide
        y += 20 if group else 0
    return y + 2


def _occurring(history: History) -> set[str]:
    kinds: set[str] = {span.kind for span in history.spans}
    kinds |= {"dim" if mark.kind == "light" and not mark.bright else mark.kind for mark in history.marks}
    if any(span.kind is Kind.WAIT and history.locks.get(span.verb) for span in history.spans):
        kinds.add("queue")
    if any(not span.begun or not span.over or _epochs(span, history) > 1 for span in history.spans):
        kinds.add("edge")
    return kinds


def _epochs(span: Span, history: History) -> int:
    """The number of panels that show a span."""
    return (span.until - 1) // history.minutes - span.since // history.minutes + 1
