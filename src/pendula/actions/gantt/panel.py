"""One epoch of the picture: hours across, actors and locks down."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import TypeAlias

from msgspec import Struct

from pendula import svg
from pendula.actions.gantt import marks
from pendula.actions.gantt.rows import natural_order, packed, rows_of_actions, shortened, text_width
from pendula.actions.gantt.spans import History, Kind, Mark, Span, holders
from pendula.kernel.time import format_iso, plus_minutes

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
        self.parts.append(marks.words(16, self.y + 14, title, "h2"))
        if carried:
            text = shortened(f"continued: {', '.join(carried)}", RIGHT - 420)
            self.parts.append(f'<g text-anchor="end">{marks.words(RIGHT, self.y + 14, text, "soft")}</g>')
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
                drawn.append(
                    f'<g text-anchor="middle">{marks.words(x, top - 8, self._clock(minute), "soft small")}</g>'
                )
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
            self.parts.append(marks.words(LEFT, self.y + 13, f"and {len(names) - MOST_LANES} more {group}", "soft"))
            self.y += ROW

    def _begin_lane(self, name: str, height: float, place: int, classes: str) -> None:
        if place % 2 == 0:
            self.parts.append(svg.box(16, self.y, RIGHT - 16, height, "band"))
        label = shortened(name, LEFT - 28)
        self.parts.append(svg.tooltip(name, marks.words(LEFT - 8, self.y + 14, label, classes)))

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
            self.parts.append(marks.words(LEFT + 4, self.y + height - 6, f"and {left_out} more waiting", "small soft"))
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
        self.parts.append(marks.words(x, y + 11, name))
        by = shortened(", ".join(mark.label for mark in before), end - x - text_width(name) - 8, 10)
        if by:
            self.parts.append(marks.words(x + text_width(name) + 6, y + 10.5, f"by {by}", "small"))
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
            self.parts.append(marks.words(x, y + 11, name, "halo"))
            x += text_width(name) + SIGN
        for mark in marked:
            if label := shortened(mark.label, (wider if mark.kind == "bolt" else room) - x, 10):
                self.parts.append(marks.words(x, y + 10.5, label, f"small halo {LABELS[mark.kind]}"))
                x += text_width(label, 10) + SIGN

    def _sign(self, mark: Mark, x: float, y: float) -> str:
        sign = marks.bolt(x, y + BAR) if mark.kind == "bolt" else marks.diamond(x, y + BAR / 2, mark.bright)
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
            self.parts.append(marks.words(left + 4, y + 11, _whose(span, right - left - 8)))
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
            text = marks.words(x + 8, y + 3.5, shortened(mark.label, after - x - 16, 10), "small refused")
            tooltip = f"{self._clock(mark.minute)} {mark.label}\n{mark.note}"
            self.parts.append(svg.tooltip(tooltip, marks.cross(x, y), text))
        self.y += count * ROW + GAP
        if left_out:
            self.parts.append(marks.words(LEFT + 4, self.y + 10, f"and {left_out} more", "small refused"))
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
                shape = marks.bar(left, y, right - left, BAR, classes, from_before=before, goes_on=after)
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
