"""Snapshots of a network for display: positions of participants, lines, and display keys.

Widths, shades, sizes and colours are keys (`viz_*`) defined by the palette, so that a user interface computes nothing.
Everything is derived from the ledger in integers: the same ledger gives the same snapshot.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from pendula.credit.ledger.book import Book
from pendula.credit.model import LineStatus, Participant, ParticipantStatus, ParticipantType
from pendula.credit.money import text

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
