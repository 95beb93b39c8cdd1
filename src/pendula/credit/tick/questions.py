"""Questions of a run to external code: a payment service, a behaviour, a solver.

Every question goes through `Outside`, which records the answer: a replay asks no external code. Answers are validated;
an invalid one is a failure of the payment or the call, never of the run.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.cycles import SHORTEST, Cycle
from pendula.credit.ledger.payment import Refused
from pendula.credit.ledger.routing import Route
from pendula.credit.model import TECHNICAL, Code
from pendula.credit.money import InvalidAmount, atoms, text
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outside


class Proposal(Struct, frozen=True, forbid_unknown_fields=True, rename={"sender": "from", "receiver": "to"}):
    """A payment that a behaviour proposes."""

    sender: str
    receiver: str
    equivalent: str
    amount: str


class Order(NamedTuple):
    """A payment as it is sent to the payment service."""

    key: str
    sender: str
    receiver: str
    amount: int
    book: Book

    def question(self, attempt: int) -> dict[str, Json]:
        return {
            "from": self.sender,
            "to": self.receiver,
            "equivalent": self.book.code,
            "amount": text(self.amount),
            "idempotency_key": self.key,
            "attempt": attempt,
        }


class OutsideClearing(NamedTuple):
    """The cycles a service cleared and the duration of its call; `failure` is set if it cleared nothing."""

    cycles: tuple[Cycle, ...]
    cost_ms: int
    failure: Code | None = None
    trouble: dict[str, Json] = {}
    astray: bool = False


class InvalidRoutes(NamedTuple):
    """Routes of a payment of the service that the ledger cannot mirror: the two ledgers disagree."""

    details: dict[str, Json]


class TickFailed(Exception):
    """The payment service failed the whole tick, which is rolled back. Internal to the engine."""


def ask_behaviour(outside: Outside, question: Json, most: int) -> tuple[list[Proposal], int]:
    """At most `most` proposals of a behaviour, and the number of invalid ones."""
    answer: Any = outside.ask("plan", question)
    if not isinstance(answer, list | tuple):
        return [], 1
    proposals: list[Proposal] = []
    bad = 0
    for entry in answer[:most]:
        try:
            proposals.append(msgspec.convert(entry, Proposal))
        except msgspec.ValidationError:
            bad += 1
    return proposals, bad


def pay_outside(
    outside: Outside, orders: Sequence[Order], retries: int
) -> list[tuple[Route, ...] | Refused | InvalidRoutes]:
    """Send payments together; retry timed-out ones under the same key, up to `retries` times."""
    late = Refused(Code.PAYMENT_TIMEOUT, {"kind": "service_timeout"})
    results: dict[int, tuple[Route, ...] | Refused | InvalidRoutes] = dict.fromkeys(range(len(orders)), late)
    left = list(range(len(orders)))
    for attempt in range(retries + 1):
        answers = _ask_together(outside, [orders[at].question(attempt) for at in left])
        for at, answer in zip(left, answers, strict=True):
            results[at] = _understood(answer, orders[at])
        left = [at for at in left if _is_late(results[at])]
        if not left:
            break
    return list(results.values())


def _ask_together(outside: Outside, questions: list[dict[str, Json]]) -> list[Any]:
    """The answers in the order of the questions; a single payment uses the question `pay`."""
    if len(questions) == 1:
        return [outside.ask("pay", questions[0])]
    answers: Any = outside.ask("pay_many", {"payments": [*questions]})
    if not isinstance(answers, list | tuple) or len(answers) != len(questions):
        return [None] * len(questions)
    return list(answers)


def _is_late(result: tuple[Route, ...] | Refused | InvalidRoutes) -> bool:
    return isinstance(result, Refused) and result.code is Code.PAYMENT_TIMEOUT


def clear_outside(outside: Outside, book: Book, depth: int, budget_ms: int, hard_ms: int, key: str) -> OutsideClearing:
    """Ask a payment service to clear one equivalent."""
    answer: Any = outside.ask(
        "clear",
        {
            "equivalent": book.code,
            "max_depth": depth,
            "time_budget_ms": budget_ms,
            "hard_timeout_ms": hard_ms,
            "idempotency_key": key,
        },
    )
    cost = answer.get("cost_ms") if isinstance(answer, dict) else None
    cost_ms = max(1, cost) if type(cost) is int else 1
    match answer:
        case {"tick_failed": True}:
            raise TickFailed
        case {"cycles": [*rows]}:
            cycles = _cycles(rows, book)
            return OutsideClearing((), cost_ms, astray=True) if cycles is None else OutsideClearing(cycles, cost_ms)
        case {"timeout": True}:
            return OutsideClearing((), cost_ms, Code.PAYMENT_TIMEOUT, _trouble(answer))
        case {"error": {"code": str(code)}}:
            known = Code(code) if code in tuple(Code) else Code.PAYMENT_REJECTED
            return OutsideClearing((), cost_ms, known, _trouble(answer))
    return OutsideClearing((), cost_ms, Code.INTERNAL_ERROR)


def _cycles(rows: Sequence[Any], book: Book) -> tuple[Cycle, ...] | None:
    """Cycles of existing debts, each debt large enough for all cycles through it; None if an answer is invalid."""
    left: dict[int, int] = {}
    cycles: list[Cycle] = []
    for row in rows:
        match row:
            case {"cleared_amount": str(amount), "edges": [*edges]}:
                cycle = _cycle(edges, amount, book)
            case _:
                return None
        if cycle is None:
            return None
        for h in cycle.hops:
            left[h] = left.get(h, book.owed[h]) - cycle.amount
            if left[h] < 0:
                return None
        cycles.append(cycle)
    return tuple(cycles)


def _cycle(edges: Sequence[Any], amount: str, book: Book) -> Cycle | None:
    """Edges go from creditor to debtor, as in events; the cycle starts at its smallest participant."""
    owes: dict[int, tuple[int, int]] = {}
    for edge in edges:
        match edge:
            case {"from": str(creditor), "to": str(debtor)}:
                h = book.line(creditor, debtor)
            case _:
                return None
        if h is None or book.debtor[h] in owes:
            return None
        owes[book.debtor[h]] = book.creditor[h], h
    try:
        cleared = atoms(amount)
    except InvalidAmount:
        return None
    if len(owes) < SHORTEST or cleared <= 0:
        return None
    nodes, hops = [min(owes)], list[int]()
    while nodes[-1] in owes and len(hops) < len(owes):
        creditor_node, h = owes[nodes[-1]]
        hops.append(h)
        nodes.append(creditor_node)
    closed = len(hops) == len(owes) and nodes[-1] == nodes[0] and len(set(nodes)) == len(hops)
    return Cycle(tuple(nodes[:-1]), tuple(hops), cleared) if closed else None


def _understood(answer: Any, order: Order) -> tuple[Route, ...] | Refused | InvalidRoutes:
    """Routes, or the reason for the failure; an invalid answer is an internal error."""
    match answer:
        case {"timeout": True}:
            return _failed(Code.PAYMENT_TIMEOUT, "service_timeout", answer)
        case {"tick_failed": True}:
            raise TickFailed
        case {"status": "COMMITTED", "routes": [*routes]}:
            return _routes(routes, order)
        case {"status": "ABORTED", "error": {"code": str(code)}}:
            known = Code(code) if code in tuple(Code) else Code.PAYMENT_REJECTED
            return _failed(known, "service_failed" if known in TECHNICAL else "service_refused", answer)
    return _failed(Code.INTERNAL_ERROR, "invalid_service_answer", answer)


def _failed(code: Code, kind: str, answer: Any) -> Refused:
    trouble = _trouble(answer)
    return Refused(code, {"kind": kind, "engine": trouble} if trouble else {"kind": kind})


def _trouble(answer: Any) -> dict[str, Json]:
    """Address and cause of a call without a result, as recorded with the answer."""
    match answer:
        case {"trouble": {"code": str(code), "url": str(url), "cause": str(cause), **more}}:
            status = more.get("status")
            trouble: dict[str, Json] = {"code": code, "url": url, "cause": cause}
            return trouble if type(status) is not int else {**trouble, "status": status}
    return {}


def _routes(routes: Sequence[Any], order: Order) -> tuple[Route, ...] | InvalidRoutes:
    """Routes over existing lines from sender to receiver that carry the amount in all."""
    understood: list[Route] = []
    for route in routes:
        match route:
            case {"path": [*path], "amount": str(amount)} if len(path) >= 2:
                hops: list[int] = []
                for here, there in pairwise(map(str, path)):
                    h = order.book.line(there, here)
                    if h is None:
                        return _no_line(here, there)
                    hops.append(h)
                try:
                    carried = atoms(amount)
                except InvalidAmount:
                    return InvalidRoutes({"kind": "route_amount", "value": amount[:100]})
                if carried <= 0 or (path[0], path[-1]) != (order.sender, order.receiver):
                    return InvalidRoutes({"kind": "route_ends"})
                understood.append(Route(tuple(hops), carried))
            case _:
                return InvalidRoutes({"kind": "route_form"})
    total = sum(route.amount for route in understood)
    if total != order.amount:
        return InvalidRoutes({"kind": "route_total", "expected": text(order.amount), "found": text(total)})
    return tuple(understood)


def _no_line(debtor: str, creditor: str) -> InvalidRoutes:
    return InvalidRoutes({"kind": "unknown_line", "line": {"from": debtor[:100], "to": creditor[:100]}})
