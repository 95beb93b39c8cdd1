"""A run as one picture: title, legend, a panel an epoch with hours across, actors and locks down."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice, pairwise
from re import compile as regex
from typing import Any, Protocol, Self, TypeAlias, TypeVar

from msgspec import Struct

from pendula import svg
from pendula.actions.gantt.spans import Day, History, Kind, Mark, Span, history_of, holders
from pendula.actions.messages import WORLD_EVENTS, Diagnostic, EpochBegan, Event, Rejection, WorldEvent
from pendula.actions.minute.world_state import WorldState
from pendula.actions.rules.validation import Verb
from pendula.actions.saving import saved_at, saved_in
from pendula.kernel.canonical import Json, decode, encode
from pendula.kernel.time import format_iso, plus_minutes
from pendula.kernel.wording import counted

# Neighbours in the list of verbs differ most.
_LIGHT = (
    *("#a5c8ee", "#f7bd7f", "#9fd39a", "#f2a7a0", "#c8b6ea", "#dfd46f", "#8fd5d2", "#f3b4d3", "#c4c9d0", "#d9b99f"),
    *("#b7b9f5", "#b9d98c", "#f5cf63", "#e3bcf0", "#93d8b4", "#eab29a", "#9bcfe0", "#cfd0a8", "#f0b3bd", "#b5c4d8"),
)
_DARK = (
    *("#2d5f92", "#97571a", "#2f7438", "#96403b", "#654d9b", "#736b1c", "#1f7370", "#93477a", "#55606d", "#775640"),
    *("#4a4fa8", "#567a26", "#8a6a10", "#7b4a8a", "#23754f", "#8d5238", "#2f6f85", "#63653a", "#8b4452", "#455a74"),
)
COLOURS = len(_LIGHT)

STYLE = (
    "svg{--paper:#fff;--ink:#1c2733;--soft:#66717e;--line:#dfe4ea;--band:#f5f7f9;--edge:#00000040;--hatch:#8a95a3;"
    "--bolt:#c62828;--light:#00796b;--cross:#ad5a00;"
    + "".join(f"--c{place}:{colour};" for place, colour in enumerate(_LIGHT))
    + "font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;font-size:11px}"
    "@media(prefers-color-scheme:dark){svg{--paper:#14191f;--ink:#e8edf2;--soft:#98a4b1;--line:#2b333d;--band:#1a2028;"
    "--edge:#ffffff38;--hatch:#7d8998;--bolt:#ff7b72;--light:#4fd1c0;--cross:#f0a050;"
    + "".join(f"--c{place}:{colour};" for place, colour in enumerate(_DARK))
    + "}}"
    "text{fill:var(--ink)}.paper{fill:var(--paper)}.band{fill:var(--band)}.soft{fill:var(--soft)}"
    ".grid{stroke:var(--line);stroke-width:1}.rule{stroke:var(--soft);stroke-width:1}"
    ".h1{font-size:17px;font-weight:600}.h2{font-size:13px;font-weight:600}.small{font-size:10px}"
    ".lane{text-anchor:end}.lock{font-style:italic}"
    ".bar{stroke:var(--edge);stroke-width:1}.wait{fill:url(#hatch);stroke:var(--hatch);stroke-width:.6}"
    ".aside{stroke:var(--hatch);stroke-width:1.6;stroke-dasharray:1 4;stroke-linecap:round}"
    ".queue{fill:var(--hatch)}.hatching{stroke:var(--hatch);stroke-width:1.4}"
    ".bolt{fill:var(--bolt)}.light{fill:var(--light)}.dim{fill:var(--paper);stroke:var(--light);stroke-width:1.2}"
    ".cross{stroke:var(--cross);stroke-width:2;stroke-linecap:round}"
    ".by{fill:var(--bolt)}.known{fill:var(--light)}.refused{fill:var(--cross)}"
    ".halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px;stroke-linejoin:round}"
    + "".join(f".v{place}{{fill:var(--c{place})}}" for place in range(COLOURS))
)

HATCH = (
    '<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatching" x1="0" y1="0" x2="0" y2="5"/></pattern></defs>'
)


def words(x: float, y: float, text: str, classes: str = "") -> str:
    """A text element; nothing for an empty text."""
    return svg.words(x, y, text, classes) if text else ""


def bar(x: float, y: float, width: float, height: float, classes: str, *, from_before: bool, goes_on: bool) -> str:
    """A bar, notched on the left if it began before the panel, pointed on the right if it continues after it."""
    if not (from_before or goes_on):
        return svg.box(x, y, width, height, classes, min(3.0, width / 2))
    tip = min(6.0, width / 2)
    right, middle, bottom = x + width, y + height / 2, y + height
    notch = f"L{svg.number(x + tip)} {svg.number(middle)}" if from_before else ""
    if goes_on:
        inner = svg.number(right - tip)
        head = f"H{inner}L{svg.number(right)} {svg.number(middle)}L{inner} {svg.number(bottom)}"
    else:
        head = f"H{svg.number(right)}V{svg.number(bottom)}"
    return svg.path(f"M{svg.number(x)} {svg.number(y)}{head}H{svg.number(x)}{notch}Z", classes)


def bolt(x: float, y: float) -> str:
    """A bolt with its tip at (x, y)."""
    return svg.path(f"M{svg.number(x)} {svg.number(y)}l-1.6 -7.4h3.4l-1.6 -6.6h5.4l-2 4.6h3.2z", "bolt halo")


def diamond(x: float, y: float, bright: bool) -> str:
    return svg.path(f"M{svg.number(x)} {svg.number(y - 5)}l5 5l-5 5l-5 -5z", "light halo" if bright else "dim")


def cross(x: float, y: float) -> str:
    return svg.path(f"M{svg.number(x - 3)} {svg.number(y - 3)}l6 6m0 -6l-6 6", "cross")


K = TypeVar("K", bound=Hashable)

_DIGITS = regex("([0-9]{1,18})")


def natural_order(name: str) -> tuple[tuple[str | int, ...], str]:
    """The order of lanes: `room 9` before `room 10`. Texts and numbers alternate, so they are never compared."""
    return tuple(int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))), name


def packed(intervals: Iterable[tuple[K, float, float]], most: int) -> tuple[dict[K, int], int]:
    """The first free row for each interval (key, since, until), sorted by `since`, and the number of rows. Intervals
    that do not fit into `most` rows are left out."""
    ends: list[float] = []
    rows: dict[K, int] = {}
    for key, since, until in intervals:
        row = next((place for place, end in enumerate(ends) if end <= since), len(ends))
        if row == most:
            continue
        if row == len(ends):
            ends.append(until)
        ends[row] = until
        rows[key] = row
    return rows, max(len(ends), 1)


def rows_of_actions(spans: Sequence[Span], most: int) -> tuple[dict[str, int], int]:
    """A row for each action, from its first span to its last."""
    reach: dict[str, tuple[int, int]] = {}
    for span in spans:
        since, until = reach.get(span.action_id, (span.since, span.until))
        reach[span.action_id] = (min(since, span.since), max(until, span.until))
    ordered = sorted((since, until, action_id) for action_id, (since, until) in reach.items())
    return packed(((action_id, since, until) for since, until, action_id in ordered), most)


def text_width(text: str, size: float = 11) -> float:
    """Approximate width of a text in a sans-serif font; wide letters of other scripts count double."""
    return sum(1.0 if ord(char) > 0x2E7F else 0.58 for char in text) * size


def shortened(text: str, width: float, size: float = 11) -> str:
    """The text cut to a width; empty if fewer than three letters fit."""
    if text_width(text, size) <= width:
        return text
    while len(text) > 2:
        text = text[:-1]
        if text_width(text + "…", size) <= width:
            return text.rstrip() + "…"
    return ""


LEFT, RIGHT = 124, 1184
ROW, BAR, GAP = 19, 14, 3
QUEUE = 5
MOST_LANES = 60
MOST_ROWS = 12
MOST_ROWS_OF_REFUSALS = 6
MOST_NAMED = 8
LEAST_BAR = 1.5
LABELS_APART = 46
SIGN = 9  # width of a sign
LABELS = {"bolt": "by", "light": "known"}


# Draws a lane (name, spans, number) and returns its height.
LaneOf: TypeAlias = Callable[[str, Sequence[Span], int], float]


class Scale(Struct, frozen=True):
    """Converts minutes of the run into pixels of one epoch."""

    start: int
    since: int
    until: int
    slot: int

    def x(self, minute: float) -> float:
        share = (minute - self.start - self.since) / (self.until - self.since)
        return LEFT + share * (RIGHT - LEFT)

    @property
    def first(self) -> int:
        return self.start + self.since

    @property
    def last(self) -> int:
        return self.start + self.until


class Panel:
    """Draws from the top down; `y` is the current position."""

    def __init__(self, history: History, scale: Scale, colours: Mapping[str, int], top: float) -> None:
        self._history = history
        self._scale = scale
        self._colours = colours
        self.y = top
        self.parts: list[str] = []
        self._spans = [span for span in history.spans if span.since < scale.last and span.until > scale.first]
        self._marks = [mark for mark in history.marks if self._is_here(mark)]
        self._marks_of: dict[str, list[Mark]] = {}
        self._bolts: dict[tuple[str, int], list[Mark]] = {}
        for mark in self._marks:
            if mark.kind != "cross":
                self._marks_of.setdefault(mark.actor, []).append(mark)
            if mark.kind == "bolt":
                self._bolts.setdefault((mark.action_id, mark.minute), []).append(mark)

    def draw(self, title: str) -> None:
        carried = [span.action_id for span in self._spans if span.kind is Kind.RUN and span.since < self._scale.first]
        self.parts.append(words(16, self.y + 14, title, "h2"))
        if carried:
            text = shortened(f"continued: {', '.join(carried)}", RIGHT - 420)
            self.parts.append(f'<g text-anchor="end">{words(RIGHT, self.y + 14, text, "soft")}</g>')
        self.y += 38
        axis = len(self.parts)
        top = self.y
        self._lanes("actors", self._by_actor(), self._actor_lane)
        self._lanes("locks", holders(self._spans, self._history.locks), self._lock_lane)
        self._refusals([mark for mark in self._marks if mark.kind == "cross"])
        self.parts[axis:axis] = self._axis(top)

    def _is_here(self, mark: Mark) -> bool:
        """Reveals at the end of an epoch belong to it; everything else in that minute belongs to the next."""
        if mark.kind == "light":
            return self._scale.first < mark.minute <= self._scale.last
        return self._scale.first <= mark.minute < self._scale.last

    def _by_actor(self) -> dict[str, list[Span]]:
        lanes: dict[str, list[Span]] = {}
        for span in self._spans:
            lanes.setdefault(span.actor, []).append(span)
        return lanes

    def _axis(self, top: float) -> list[str]:
        """Lines of the slots, with labels where they fit; drawn above the bands of the lanes."""
        scale = self._scale
        width = scale.x(scale.first + scale.slot) - LEFT
        every = next(step for step in (1, 2, 3, 4, 6, 12, 24, 48, 96, 10**6) if step * width >= LABELS_APART)
        drawn: list[str] = []
        for place, minute in enumerate(range(scale.first, scale.last + 1, scale.slot)):
            x = scale.x(minute)
            drawn.append(svg.line(x, top - 4, x, self.y, "grid"))
            if (minute - scale.start) // scale.slot % every == 0 or place == 0:
                drawn.append(f'<g text-anchor="middle">{words(x, top - 8, self._clock(minute), "soft small")}</g>')
        return drawn

    def _lanes(self, group: str, lanes: Mapping[str, list[Span]], draw: LaneOf) -> None:
        names = sorted(lanes, key=natural_order)
        if not names:
            return
        self.parts.append(svg.line(16, self.y, RIGHT, self.y, "rule"))
        for place, name in enumerate(names[:MOST_LANES]):
            height = draw(name, lanes[name], place)
            self.y += height
        if len(names) > MOST_LANES:
            self.parts.append(words(LEFT, self.y + 13, f"and {len(names) - MOST_LANES} more {group}", "soft"))
            self.y += ROW

    def _begin_lane(self, name: str, height: float, place: int, classes: str) -> None:
        if place % 2 == 0:
            self.parts.append(svg.box(16, self.y, RIGHT - 16, height, "band"))
        label = shortened(name, LEFT - 28)
        self.parts.append(svg.tooltip(name, words(LEFT - 8, self.y + 14, label, classes)))

    def _actor_lane(self, name: str, spans: Sequence[Span], place: int) -> float:
        """The spans of an actor; with too many rows only the running ones."""
        rows, count = rows_of_actions(spans, MOST_ROWS)
        actions = {span.action_id for span in spans}
        if len(rows) < len(actions):
            rows, count = rows_of_actions([span for span in spans if span.kind is Kind.RUN], MOST_ROWS)
            spans = [span for span in spans if span.kind is Kind.RUN and span.action_id in rows]
        left_out = len(actions) - len(rows)
        height = (count + (left_out > 0)) * ROW + GAP
        self._begin_lane(name, height, place, "lane")
        here: dict[int, list[Mark]] = {}
        for mark in self._marks_of.get(name, ()):
            here.setdefault(rows.get(mark.action_id, 0), []).append(mark)
        for row in range(count):
            in_row = [span for span in spans if rows[span.action_id] == row]
            self._row(in_row, here.get(row, ()), self.y + row * ROW + GAP)
        if left_out:
            self.parts.append(words(LEFT + 4, self.y + height - 6, f"and {left_out} more waiting", "small soft"))
        return height

    def _row(self, spans: Sequence[Span], moments: Sequence[Mark], y: float) -> None:
        """Draw shapes, then signs, then names from left to right as far as there is space."""
        self.parts += [self._span_shape(span, y) for span in spans]
        signs: dict[int, list[Mark]] = {}
        for mark in moments:
            signs.setdefault(mark.minute, []).append(mark)
        for minute, marked in sorted(signs.items()):
            self.parts += [
                self._sign(mark, self._scale.x(minute) + SIGN * place, y) for place, mark in enumerate(marked)
            ]
        solid = [span for span in spans if span.kind is not Kind.ASIDE]
        for span in spans:
            if span.kind is Kind.RUN:
                name = self._inside(span, signs, y)
                self._behind(span.until, name, signs.pop(span.until, []), solid, y)
        for minute, marked in sorted(signs.items()):
            self._behind(minute, "", marked, solid, y)

    def _inside(self, span: Span, signs: Mapping[int, Sequence[Mark]], y: float) -> str:
        """Write the verb into its bar, with what interrupted the segment before; return it if it does not fit."""
        left, right = self._pixels(span)
        before = self._interrupts_at_start(span)
        x = left + 4 + SIGN * len(before)
        end = right - (SIGN if span.until in signs else 4)
        name = shortened(span.verb, end - x)
        if name != span.verb and right - left <= 40:
            return span.verb
        self.parts.append(words(x, y + 11, name))
        by = shortened(", ".join(mark.label for mark in before), end - x - text_width(name) - 8, 10)
        if by:
            self.parts.append(words(x + text_width(name) + 6, y + 10.5, f"by {by}", "small"))
        return ""

    def _interrupts_at_start(self, span: Span) -> list[Mark]:
        """Interrupts in the minute in which this span begins."""
        return self._bolts.get((span.action_id, span.since), [])

    def _behind(self, minute: int, name: str, marked: Sequence[Mark], solid: Sequence[Span], y: float) -> None:
        """Write names behind the end of a bar as far as there is space; names of interrupts may cover a wait."""
        if minute > self._scale.last:
            return
        end = self._scale.x(minute)
        x = end + 4 + (SIGN * len(marked) if marked else 0)
        later = [span for span in solid if span.since >= minute]
        room = min((self._pixels(span)[0] for span in later), default=float(RIGHT)) - 2
        wider = min((self._pixels(span)[0] for span in later if span.kind is Kind.RUN), default=float(RIGHT)) - 2
        if name := shortened(name, room - x):
            self.parts.append(words(x, y + 11, name, "halo"))
            x += text_width(name) + SIGN
        for mark in marked:
            if label := shortened(mark.label, (wider if mark.kind == "bolt" else room) - x, 10):
                self.parts.append(words(x, y + 10.5, label, f"small halo {LABELS[mark.kind]}"))
                x += text_width(label, 10) + SIGN

    def _sign(self, mark: Mark, x: float, y: float) -> str:
        sign = bolt(x, y + BAR) if mark.kind == "bolt" else diamond(x, y + BAR / 2, mark.bright)
        return svg.tooltip(f"{self._clock(mark.minute)} {mark.action_id}: {mark.note}", sign)

    def _lock_lane(self, name: str, spans: Sequence[Span], place: int) -> float:
        """The holders, one row for each at a time, and below them the queue, thicker the longer it is."""
        queues = list(_queues([span for span in spans if span.kind is Kind.WAIT]))
        held = [span for span in spans if span.kind is Kind.RUN]
        rows, count = packed(((at, float(one.since), float(one.until)) for at, one in enumerate(held)), MOST_ROWS)
        height = count * ROW + GAP + (QUEUE if queues else 0)
        self._begin_lane(name, height, place, "lane lock")
        for at, row in rows.items():
            span, y = held[at], self.y + GAP + row * ROW
            self.parts.append(self._span_shape(span, y))
            left, right = self._pixels(span)
            self.parts.append(words(left + 4, y + 11, _whose(span, right - left - 8)))
        y = self.y + GAP + (count - 1) * ROW
        for since, until, waiting, first in queues:
            left, right = self._clipped(since, until)
            if right > left:
                who = f"{waiting} waiting: {first}\n{self._clock(since)} to {self._clock(until)}"
                thick = min(QUEUE, 1 + waiting)
                self.parts.append(svg.tooltip(who, svg.box(left, y + BAR + 2, right - left, thick, "queue")))
        return height

    def _refusals(self, moments: Sequence[Mark]) -> None:
        """Rejections and diagnostics."""
        if not moments:
            return
        self.parts.append(svg.line(16, self.y, RIGHT, self.y, "rule"))
        ordered = sorted(enumerate(moments), key=lambda pair: (pair[1].minute, pair[0]))
        reach = [(place, self._refusal_at(mark)) for place, mark in ordered]
        rows, count = packed(((place, x, x + wide) for place, (x, wide) in reach), MOST_ROWS_OF_REFUSALS)
        left_out = len(moments) - len(rows)
        reach = [one for one in reach if one[0] in rows]
        self._begin_lane("no effect", (count + (left_out > 0)) * ROW + GAP, 1, "lane soft")
        for place, (x, _) in reach:
            mark, y = moments[place], self.y + rows[place] * ROW + GAP + BAR / 2
            after = min((other for one, (other, _) in reach if rows[one] == rows[place] and other > x), default=RIGHT)
            text = words(x + 8, y + 3.5, shortened(mark.label, after - x - 16, 10), "small refused")
            tooltip = f"{self._clock(mark.minute)} {mark.label}\n{mark.note}"
            self.parts.append(svg.tooltip(tooltip, cross(x, y), text))
        self.y += count * ROW + GAP
        if left_out:
            self.parts.append(words(LEFT + 4, self.y + 10, f"and {left_out} more", "small refused"))
            self.y += ROW

    def _refusal_at(self, mark: Mark) -> tuple[float, float]:
        """Position and width of a cross with its text; near the right edge it moves to the left."""
        wide = text_width(mark.label, 10) + 16
        return min(self._scale.x(mark.minute), max(RIGHT - wide, LEFT)), wide

    def _span_shape(self, span: Span, y: float) -> str:
        left, right = self._pixels(span)
        before = not span.begun or span.since < self._scale.first
        after = not span.over or span.until > self._scale.last
        match span.kind:
            case Kind.RUN:
                classes = f"bar v{self._colours[span.verb]}"
                shape = bar(left, y, right - left, BAR, classes, from_before=before, goes_on=after)
            case Kind.WAIT:
                shape = svg.box(left, y + 3, right - left, BAR - 6, "wait")
            case Kind.ASIDE:
                shape = svg.line(left, y + BAR / 2, right, y + BAR / 2, "aside")
        return svg.tooltip(self._tooltip(span), shape)

    def _tooltip(self, span: Span) -> str:
        since = self._clock(span.since) if span.begun else "before"
        until = self._clock(span.until) if span.over else "after"
        does = {Kind.RUN: span.verb, Kind.WAIT: f"waits to {span.verb}", Kind.ASIDE: f"{span.verb} is on hold"}
        return f"{span.action_id} · {span.actor}: {does[span.kind]}\n{since} to {until}\n{span.note}".rstrip()

    def _pixels(self, span: Span) -> tuple[float, float]:
        left, right = self._clipped(span.since, span.until)
        return left, max(right, left + LEAST_BAR)

    def _clipped(self, since: int, until: int) -> tuple[float, float]:
        return self._scale.x(max(since, self._scale.first)), self._scale.x(min(until, self._scale.last))

    def _clock(self, minute: int) -> str:
        return format_iso(plus_minutes(self._history.start, minute))[11:16]


def _whose(span: Span, room: float) -> str:
    """Actor and verb, or the actor if both do not fit."""
    whole = f"{span.actor}: {span.verb}"
    return whole if text_width(whole) <= room else shortened(span.actor, room)


def _queues(waits: Sequence[Span]) -> Iterator[tuple[int, int, int, str]]:
    """Intervals with an unchanged queue: since, until, length, and the first ids."""
    changes: dict[int, tuple[list[str], list[str]]] = {}
    for wait in waits:
        changes.setdefault(wait.since, ([], []))[0].append(wait.action_id)
        changes.setdefault(wait.until, ([], []))[1].append(wait.action_id)
    waiting: dict[str, None] = {}
    for since, until in pairwise(sorted(changes)):
        came, went = changes[since]
        for action_id in went:
            waiting.pop(action_id, None)
        waiting.update(dict.fromkeys(came))
        if waiting:
            first = ", ".join(islice(waiting, MOST_NAMED))
            yield since, until, len(waiting), f"{first} …" if len(waiting) > MOST_NAMED else first


WIDTH = 1200
MOST_EPOCHS = 14
MOST_IN_LEGEND = 24
LEAST_SLOTS = 4
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Label and shape of each sign in the legend.
SIGNS = {
    Kind.WAIT: ("waits for a lock", svg.box(0, 3, 22, BAR - 6, "wait")),
    Kind.ASIDE: ("on hold", svg.line(1, 7, 21, 7, "aside")),
    "bolt": ("interrupted, by", bolt(12, BAR)),
    "light": ("revealed", diamond(11, 7, True)),
    "dim": ("revealed, not to the player", diamond(11, 7, False)),
    "edge": ("continues in another epoch", bar(0, 0, 22, BAR, "bar v8", from_before=True, goes_on=True)),
    "queue": ("queue of a lock", svg.box(0, 6, 22, 4, "queue")),
    "cross": ("no effect", cross(11, 7)),
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
    colours = {verb: place % COLOURS for place, verb in enumerate(verbs)}
    parts = [words(16, 30, shortened(title, WIDTH - 32, 17), "h1")]
    parts.append(words(16, 50, _summary(history), "soft"))
    y = _legend(parts, history, colours, 72)
    since, until = _window(history, history.minutes // slots)
    for number in range(min(history.epochs, most_epochs)):
        scale = Scale(number * history.minutes, since, until, history.minutes // slots)
        panel = Panel(history, scale, colours, y + 14)
        panel.draw(_day(history, number))
        parts += panel.parts
        y = panel.y + 8
    if history.epochs > most_epochs:
        parts.append(words(16, y + 20, f"Not drawn: {counted(history.epochs - most_epochs, 'more epoch')}.", "soft"))
        y += 24
    return _document(parts, y + 16, title, _summary(history))


def _document(parts: list[str], height: float, title: str, summary: str) -> str:
    head = svg.opening(WIDTH, height, f"{title}: {summary}")
    # No title element for the whole: it would be the tooltip of every shape without one.
    body = "\n".join(part for part in parts if part)
    paper = svg.box(0, 0, WIDTH, height, "paper")
    return f"{head}\n<style>{STYLE}</style>\n{HATCH}\n{paper}\n{body}\n</svg>\n"


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
    named = sorted(colours.items(), key=lambda pair: natural_order(pair[0]))[:MOST_IN_LEGEND]
    entries = [(verb, svg.box(0, 0, 22, BAR, f"bar v{place}", 3)) for verb, place in named]
    if len(colours) > MOST_IN_LEGEND:
        entries.append((f"and {len(colours) - MOST_IN_LEGEND} more verbs", ""))
    signs = [sign for what, sign in SIGNS.items() if what in _occurring(history)]
    for group in (entries, signs):
        x = 16.0
        for name, drawn in group:
            label = shortened(name, 320)
            wide = 28 + text_width(label) + 16
            if x + wide > RIGHT:
                x, y = 16.0, y + 20
            place = f"translate({svg.number(x)} {svg.number(y)})"
            parts.append(f'<g transform="{place}">{drawn}{words(27, 11, label)}</g>')
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


class RecentEpoch(Struct, frozen=True):
    """The kept events of one epoch."""

    header: EpochBegan
    end_at: str
    events: tuple[WorldEvent, ...]
    rejections: tuple[Rejection, ...]
    diagnostics: tuple[Diagnostic, ...]


class Timeline(Struct, frozen=True):
    """An SVG picture, which a notebook displays."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    @classmethod
    def of(cls, world: WorldState, events: Sequence[Event], title: str) -> Self:
        """The epochs of these events up to the current minute, with the actions that run and wait in it."""
        setting, clock = world.setting, world.clock
        last = setting.first_epoch + clock.epoch
        shown = [event for event in events if not isinstance(event, EpochBegan)]
        first = min((event.epoch for event in shown), default=last)
        days = []
        for epoch in range(first, last + 1):
            start = (epoch - setting.first_epoch) * setting.horizon
            of_day = [event for event in shown if event.epoch == epoch]
            days.append(
                RecentEpoch(
                    EpochBegan(epoch, setting.display(start), ()),
                    setting.display(start + setting.horizon),
                    tuple(event for event in of_day if isinstance(event, WORLD_EVENTS)),
                    tuple(event for event in of_day if isinstance(event, Rejection)),
                    tuple(event for event in of_day if isinstance(event, Diagnostic)),
                )
            )
        verbs = {name: decode(encode(one.definition)) for name, one in setting.verbs.items() if isinstance(one, Verb)}
        upto = clock.minute - (first - setting.first_epoch) * setting.horizon
        history = history_of(days, saved_at(world, clock.minute), verbs, upto)
        return cls(drawn(history, setting.options.slots, title or "Actions"))
