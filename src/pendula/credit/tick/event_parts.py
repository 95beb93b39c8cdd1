"""Parts of the ledger as they appear in events: routes, edges, positions and lines."""

from collections.abc import Iterable

from pendula.credit.events import Edge, EdgePatch, LineView, NodePatch, RouteView
from pendula.credit.ledger.book import Book
from pendula.credit.ledger.routing import Route
from pendula.credit.money import text
from pendula.kernel.canonical import Json


def route_views(book: Book, routes: Iterable[Route]) -> tuple[RouteView, ...]:
    names = book.people.names
    return tuple(
        RouteView(
            (names[book.debtor[route.hops[0]]], *(names[book.creditor[h]] for h in route.hops)), text(route.amount)
        )
        for route in routes
    )


def hops_of(routes: Iterable[Route]) -> list[int]:
    """Every hop once, in the order of the routes."""
    return list(dict.fromkeys(h for route in routes for h in route.hops))


def edges(book: Book, hops: Iterable[int]) -> tuple[Edge, ...]:
    """Steps of a payment, from the debtor of each line to its creditor."""
    names, debtor, creditor = book.people.names, book.debtor, book.creditor
    return tuple(Edge(names[debtor[h]], names[creditor[h]]) for h in hops)


def highlighted_edges(book: Book, hops: Iterable[int]) -> tuple[Edge, ...]:
    """Lines that a clearing highlights, from creditor to debtor as in snapshots."""
    return tuple(Edge(edge.target, edge.source) for edge in edges(book, hops))


def node_patches(book: Book, nodes: Iterable[int]) -> tuple[NodePatch, ...]:
    patches = []
    for node in nodes:
        position = book.position(node)
        sign = (position > 0) - (position < 0)
        patches.append(NodePatch(book.people.names[node], text(position), str(position), sign))
    return tuple(patches)


def edge_patches(book: Book, hops: Iterable[int]) -> tuple[EdgePatch, ...]:
    """The lines of these hops and their opposite lines."""
    lines: dict[int, None] = {}
    for h in hops:
        lines[h] = None
        if book.back[h] >= 0:
            lines[book.back[h]] = None
    return tuple(edge_patch(book, h) for h in lines)


def edge_patch(book: Book, h: int) -> EdgePatch:
    names, used, limit = book.people.names, book.debt(h), book.limit[h]
    ends = names[book.creditor[h]], names[book.debtor[h]]
    return EdgePatch(*ends, text(used), text(max(0, limit - used)), text(limit))


def line_view(book: Book, h: int) -> LineView:
    names = book.people.names
    return LineView(names[book.creditor[h]], names[book.debtor[h]], book.code, text(book.limit[h]))


def routes_json(routes: Iterable[RouteView]) -> Json:
    return [{"path": list(route.path), "amount": route.amount} for route in routes]
