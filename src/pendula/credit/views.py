"""Views of a network: snapshots for display, its bottlenecks, payment targets, and metrics over virtual time.

Widths, shades, sizes and colours are keys (`viz_*`) defined by the palette, so that a user interface computes nothing.
Everything is derived from the ledger in integers: the same ledger gives the same view.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from msgspec import UNSET, Struct, UnsetType

from pendula.credit.events import Ticked
from pendula.credit.ledger.book import Book
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.credit.model import LineStatus, Participant, ParticipantStatus, ParticipantType
from pendula.credit.money import MOST, text
from pendula.credit.state.network import Bottleneck as HopBottleneck
from pendula.credit.state.network import EquivalentLedger
from pendula.kernel.cancellation import check
from pendula.kernel.errors import InputRefused

# Snapshots

DEBT_SHADES = 9
SIZE_LEAST, SIZE_MORE = 16, 16
# Opacity of a line by use, from this percentage of its limit on.
ALPHAS = ((75, "hi"), (40, "active"), (15, "muted"), (0, "bg"))
MOST_PARTICLES = 220


class Size(Struct, frozen=True):
    w: int
    h: int


class Shade(Struct, frozen=True):
    """One entry of the palette."""

    color: str
    label: str


class Limits(Struct, frozen=True):
    """Display limits; null means no limit."""

    max_nodes: int | None = None
    max_links: int | None = None
    max_particles: int | None = MOST_PARTICLES


class Node(Struct, frozen=True):
    id: str
    name: str | None
    type: str
    status: str
    links_count: int
    net_balance: str
    net_balance_atoms: str
    net_sign: int
    viz_color_key: str
    viz_shape_key: str
    viz_size: Size
    viz_badge_key: str | None = None


class Link(Struct, frozen=True):
    """A line; `source` is the creditor, `target` the debtor."""

    source: str
    target: str
    trust_limit: str
    used: str
    available: str
    status: str
    viz_width_key: str
    viz_alpha_key: str
    viz_color_key: str | None = None


class Snapshot(Struct, frozen=True):
    equivalent: str
    generated_at: str
    nodes: list[Node]
    links: list[Link]
    palette: Mapping[str, Shade]
    limits: Limits = Limits()


_REDS = ("#fde8e8", "#fbd0d0", "#f8b4b4", "#f59595", "#f17171", "#e64c4c", "#c93434", "#a02424", "#771a1a")
PALETTE: Mapping[str, Shade] = {
    "person": Shade("#4f9dde", "Person"),
    "business": Shade("#e0a437", "Business"),
    "hub": Shade("#8a6fd1", "Hub"),
    "suspended": Shade("#9aa0a6", "Suspended"),
    "frozen": Shade("#9aa0a6", "Frozen"),
    "left": Shade("#5f6368", "Has left"),
    "deleted": Shade("#3c4043", "Deleted"),
    **{f"debt-{at}": Shade(color, f"In debt, {at + 1} of {DEBT_SHADES}") for at, color in enumerate(_REDS)},
}


class DisplayKeys:
    """Display keys relative to all participants and lines of one book; create a new one when the book has changed."""

    def __init__(self, book: Book) -> None:
        self._book = book
        limits = sorted(book.limit[h] for h in range(len(book)) if book.status[h] is not LineStatus.CLOSED)
        self._thirds = _thirds(limits)
        positions = [book.position(node) for node in range(len(book.people))]
        self._magnitudes = sorted(map(abs, positions))
        self._debts = sorted(-position for position in positions if position < 0)

    def node(self, node: int) -> dict[str, object]:
        """The display keys of a participant."""
        participant, position = self._book.people.all[node], self._book.position(node)
        side = SIZE_LEAST + _share(self._magnitudes, abs(position), SIZE_MORE)
        return {"viz_color_key": self._color(participant, position), "viz_size": {"w": side, "h": side}}

    def link(self, used: int, limit: int, status: LineStatus = LineStatus.ACTIVE) -> dict[str, object]:
        """The display keys of a line."""
        return {"viz_width_key": self.width(limit), "viz_alpha_key": alpha(used, limit, status)}

    def width(self, limit: int) -> str:
        if self._thirds is None:
            return "hairline"
        low, high = self._thirds
        return "thin" if limit <= low else "mid" if limit <= high else "thick"

    def _color(self, participant: Participant, position: int) -> str:
        if participant.status is not ParticipantStatus.ACTIVE:
            return participant.status.value
        if position < 0:
            return f"debt-{_share(self._debts, -position, DEBT_SHADES - 1)}"
        return participant.type.value


def alpha(used: int, limit: int, status: LineStatus) -> str:
    if status is not LineStatus.ACTIVE:
        return "muted"
    if limit <= 0:
        return "bg"
    return next(key for least, key in ALPHAS if 100 * used >= least * limit)


def shape(participant: Participant) -> str:
    return "circle" if participant.type is ParticipantType.PERSON else "rounded-rect"


def picture(book: Book, generated_at: str, only: Collection[int] | None = None) -> Snapshot:
    """A snapshot of the book; `only` limits it to these participants and the lines between them."""
    keys = DisplayKeys(book)
    nodes = range(len(book.people)) if only is None else sorted(only)
    shown = set(nodes)
    lines = [h for h in range(len(book)) if book.creditor[h] in shown and book.debtor[h] in shown]
    lines = [h for h in lines if book.status[h] is not LineStatus.CLOSED]
    return Snapshot(
        equivalent=book.code,
        generated_at=generated_at,
        nodes=[_node(book, keys, node) for node in nodes],
        links=[_link(book, keys, h) for h in lines],
        palette=PALETTE,
    )


def neighbourhood(book: Book, node: int, depth: int) -> set[int]:
    """A participant and all others within so many lines, in either direction."""
    near, edge = {node}, {node}
    for _ in range(depth):
        edge = {other for member in edge for other in _neighbours(book, member)} - near
        near |= edge
    return near


def _neighbours(book: Book, node: int) -> Iterable[int]:
    for h in range(len(book)):
        if book.creditor[h] == node:
            yield book.debtor[h]
        elif book.debtor[h] == node:
            yield book.creditor[h]


def _node(book: Book, keys: DisplayKeys, node: int) -> Node:
    participant, position = book.people.all[node], book.position(node)
    looks = keys.node(node)
    size = looks["viz_size"]
    assert isinstance(size, dict)
    return Node(
        id=participant.id,
        name=participant.name,
        type=participant.type.value,
        status=participant.status.value,
        links_count=_links(book, node),
        net_balance=text(position),
        net_balance_atoms=str(position),
        net_sign=(position > 0) - (position < 0),
        viz_color_key=str(looks["viz_color_key"]),
        viz_shape_key=shape(participant),
        viz_size=Size(**size),
    )


def _links(book: Book, node: int) -> int:
    return len(book.out[node]) + len(book.into[node])


def _link(book: Book, keys: DisplayKeys, h: int) -> Link:
    names, used, limit = book.people.names, book.debt(h), book.limit[h]
    return Link(
        source=names[book.creditor[h]],
        target=names[book.debtor[h]],
        trust_limit=text(limit),
        used=text(used),
        available=text(max(0, limit - used)),
        status=book.status[h].value,
        viz_width_key=keys.width(limit),
        viz_alpha_key=alpha(used, limit, book.status[h]),
    )


def _thirds(ascending: list[int]) -> tuple[int, int] | None:
    if not ascending:
        return None
    last = len(ascending) - 1
    return ascending[33 * last // 100], ascending[66 * last // 100]


def _share(ascending: list[int], value: int, most: int) -> int:
    """The rank of a value among all, scaled to 0 to `most`."""
    if len(ascending) < 2:
        return 0
    return bisect_left(ascending, value) * most // (len(ascending) - 1)


# Bottlenecks: the lines where most attempts fail, with advice

SCORE_DIGITS = 6
ADVICE = {
    "TOO_MANY_TIMEOUTS": "Find out why payments are slow here",
    "FREQUENT_ABORTS": "Raise the limit of this line, or clear debts",
    "HIGH_USED": "Clear debts",
}
CLOSED_ADVICE = "Allow payments through {creditor} over this line; a higher limit does not help"


class Target(Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """The line of a hop, from its creditor to its debtor as in snapshots."""

    source: str
    target: str
    kind: str = "edge"


class Bottleneck(Struct, frozen=True):
    target: Target
    score: Decimal
    reason_code: str
    label: str | None = None
    suggested_action: str | None = None


def worst(ledger: EquivalentLedger, most: int, least: Decimal = Decimal(0)) -> list[Bottleneck]:
    """The lines with the highest scores, highest first, ties by their ends."""
    ranked = (bottleneck for bottleneck in ledger.hops.bottlenecks() if bottleneck.counts.score >= Fraction(least))
    return [_bottleneck(ledger, entry) for entry, _ in zip(ranked, range(most), strict=False)]


def _bottleneck(ledger: EquivalentLedger, bottleneck: HopBottleneck) -> Bottleneck:
    book, counts = ledger.book, bottleneck.counts
    names = book.people.names
    creditor, debtor = names[book.creditor[bottleneck.hop]], names[book.debtor[bottleneck.hop]]
    failed = counts.rejected + counts.errors + counts.timeouts
    score = round(Decimal(counts.score.numerator) / counts.score.denominator, SCORE_DIGITS)
    label = f"{debtor} → {creditor}: {failed} of {counts.attempts} attempts failed"
    advice = ADVICE[counts.reason]
    if counts.closed:
        label += f", {counts.closed} because the line does not mediate"
    if 2 * counts.closed > failed:
        advice = CLOSED_ADVICE.format(creditor=creditor)
    return Bottleneck(Target(creditor, debtor), score, counts.reason, label, advice)


# Possible receivers of a sender, with distance in hops and maximum amount


class PaymentTarget(Struct, frozen=True):
    to_pid: str
    hops: int
    max_available: str | UnsetType = UNSET


def reachable(book: Book, sender: int, most: int) -> dict[int, int]:
    """The distance to each participant that payments can reach now."""
    if not book.people.active[sender]:
        return {}
    distances: dict[int, int] = {}
    waiting = deque([(sender, 0)])
    passed = {sender}
    while waiting:
        node, hops = waiting.popleft()
        if hops == most:
            continue
        for receiver in book.out[node]:
            h = book.hop[node][receiver]
            if book.capacity[h] <= 0:
                continue
            if receiver != sender:
                distances.setdefault(receiver, hops + 1)
            # A line that ends here need not mediate.
            if receiver not in passed and book.policy[h].mediates:
                passed.add(receiver)
                waiting.append((receiver, hops + 1))
    return distances


def targets(book: Book, processor: PaymentProcessor, sender: int, most: int, *, amounts: bool) -> list[PaymentTarget]:
    """Receivers in the order of ids, without those that cannot receive any amount."""
    names = book.people.names
    targets_ = []
    for receiver, hops in sorted(reachable(book, sender, most).items()):
        check()
        largest = _largest(processor, sender, receiver) if amounts or book.has_blocked else None
        if largest == 0:
            continue
        shown = UNSET if largest is None or not amounts else text(largest)
        targets_.append(PaymentTarget(names[receiver], hops, shown))
    return targets_


def _largest(processor: PaymentProcessor, sender: int, receiver: int) -> int:
    """The amount that the routes of a payment can carry in all."""
    result = processor.find_routes(sender, receiver, MOST)
    return getattr(result, "amount", 0)


# Metrics: between two measurements the last one holds, before the first the value is null

POINTS_MOST = 2000
SECOND_MS = 1000
UNITS = {
    "success_rate": "%",
    "avg_route_length": "count",
    "total_debt": "amount",
    "clearing_volume": "amount",
    "bottlenecks_score": "%",
    "active_participants": "count",
    "active_trustlines": "count",
}
# Additional keys beyond the protocol; only on request.
EXTENDED_UNITS: dict[str, str | None] = {
    "wanted": "amount",
    "served": "amount",
    "served_share": "%",
    "volume": "amount",
    "no_capacity_rate": None,
    "clearing_cost_ms": None,
}
ALL_UNITS: dict[str, str | None] = {**UNITS, **EXTENDED_UNITS}


class InvalidSpan(InputRefused):
    """An invalid span of virtual time. Facts: `from_ms`, `to_ms`, `step_ms`."""

    code = "INVALID_SPAN"


class Measured(Struct, frozen=True):
    """One value of one tick; None if undefined."""

    equivalent: str
    key: str
    t_ms: int
    value: str | None


class Point(Struct, frozen=True):
    t_ms: int
    v: str | None


class Series(Struct, frozen=True):
    key: str
    unit: str | None
    points: list[Point]


def usual_step(from_ms: int, to_ms: int) -> int:
    """The default step: a second, or the fewest whole seconds with which the span fits into `POINTS_MOST`."""
    seconds = -(-max(0, to_ms - from_ms) // ((POINTS_MOST - 1) * SECOND_MS))
    return max(1, seconds) * SECOND_MS


class Span(Struct, frozen=True):
    """A range of points in virtual milliseconds, including both ends."""

    from_ms: int
    to_ms: int
    step_ms: int

    def points(self) -> range:
        """The times of the points; raises `InvalidSpan`."""
        facts = {"from_ms": self.from_ms, "to_ms": self.to_ms, "step_ms": self.step_ms}
        if self.step_ms < 1 or self.from_ms < 0 or self.to_ms < self.from_ms:
            raise InvalidSpan(
                f"{self.from_ms} to {self.to_ms} by {self.step_ms} is not a span; "
                "it needs 0 <= from <= to and 1 <= step",
                **facts,
            )
        times = range(self.from_ms, self.to_ms + 1, self.step_ms)
        if len(times) > POINTS_MOST:
            raise InvalidSpan(f"These are {len(times)} points; the limit is {POINTS_MOST}", **facts)
        return times


def measurements(tick: Ticked) -> list[Measured]:
    """The measurements of one tick."""
    return [
        Measured(equivalent, key, tick.sim_time_ms, value)
        for equivalent, values in tick.metrics.items()
        for key, value in values.items()
    ]


def series(key: str, values: Sequence[tuple[int, str]], times: range) -> Series:
    """The points of one key from (time, value) measurements in order of time."""
    points = []
    for at in times:
        before = bisect_right(values, at, key=lambda entry: entry[0])
        points.append(Point(at, values[before - 1][1] if before else None))
    return Series(key, ALL_UNITS[key], points)
