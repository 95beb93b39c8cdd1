"""What a run asks of others: an outside payment service, a behaviour of the user's own, a solver.

Every question goes through `Outside`, which records the answer: a replay asks nobody. Answers are not trusted: what
does not have the form it should have is a failure of the one who answered, never of the run.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.payment import Refused
from pendula.credit.ledger.routing import Route
from pendula.credit.model import TECHNICAL, Code
from pendula.credit.money import CENT, InvalidAmount, atoms, text
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside


class Wish(Struct, frozen=True, forbid_unknown_fields=True, rename={"sender": "from", "receiver": "to"}):
    """A payment that a behaviour wants."""

    sender: str
    receiver: str
    equivalent: str
    amount: str


class Order(NamedTuple):
    """A payment as it is handed to the outside."""

    key: str
    sender: str
    receiver: str
    amount: int


class Astray(NamedTuple):
    """The service says it made a payment, over routes that cannot be followed here: the two ledgers disagree."""


class TickFailed(Exception):
    """The outside service lost the whole batch: the tick is taken back. For the engine, never for a user."""


def wishes(outside: Outside, question: Json, most: int) -> tuple[list[Wish], int]:
    """At most `most` wishes of a behaviour, and how many of its answers were none."""
    answer: Any = outside.ask("plan", question)
    if not isinstance(answer, list | tuple):
        return [], 1
    found: list[Wish] = []
    bad = 0
    for one in answer[:most]:
        try:
            found.append(msgspec.convert(one, Wish))
        except msgspec.ValidationError:
            bad += 1
    return found, bad


def amount_of(wish: Wish) -> int | None:
    """The amount in atoms if it is above nothing and whole cents."""
    try:
        found = atoms(wish.amount)
    except InvalidAmount:
        return None
    return found if found > 0 and found % CENT == 0 else None


def pay_outside(outside: Outside, book: Book, order: Order, retries: int) -> tuple[Route, ...] | Refused | Astray:
    """Ask for a payment, again after a timeout if that is allowed; always under the same key."""
    question: dict[str, Json] = {
        "from": order.sender,
        "to": order.receiver,
        "equivalent": book.code,
        "amount": text(order.amount),
        "idempotency_key": order.key,
    }
    refused = Refused(Code.PAYMENT_TIMEOUT, "The payment service did not answer in time", {})
    for attempt in range(retries + 1):
        answer: Any = outside.ask("pay", {**question, "attempt": attempt})
        found = _understood(answer, book, order)
        if not isinstance(found, Refused) or found.code is not Code.PAYMENT_TIMEOUT:
            return found
    return refused


def _understood(answer: Any, book: Book, order: Order) -> tuple[Route, ...] | Refused | Astray:
    """Routes, or why there are none; what makes no sense is an internal error."""
    match answer:
        case {"timeout": True}:
            return Refused(Code.PAYMENT_TIMEOUT, "The payment service did not answer in time", {})
        case {"tick_failed": True}:
            raise TickFailed
        case {"status": "COMMITTED", "routes": [*routes]}:
            found = _routes(routes, book, order)
            return Astray() if found is None else found
        case {"status": "ABORTED", "error": {"code": str(code)}}:
            known = Code(code) if code in tuple(Code) else Code.PAYMENT_REJECTED
            message = "The payment service failed" if known in TECHNICAL else "The payment service refused"
            return Refused(known, message, {})
    return Refused(Code.INTERNAL_ERROR, "The payment service gave an answer that makes no sense", {})


def _routes(routes: Sequence[Any], book: Book, order: Order) -> tuple[Route, ...] | None:
    """Routes over lines that are there, from sender to receiver, of the amount in all."""
    found: list[Route] = []
    for route in routes:
        match route:
            case {"path": [*path], "amount": str(amount)} if len(path) >= 2:
                hops = [book.line(str(there), str(here)) for here, there in pairwise(path)]
                try:
                    carried = atoms(amount)
                except InvalidAmount:
                    return None
                if None in hops or carried <= 0 or (path[0], path[-1]) != (order.sender, order.receiver):
                    return None
                found.append(Route(tuple(h for h in hops if h is not None), carried))
            case _:
                return None
    return tuple(found) if sum(route.amount for route in found) == order.amount else None
