"""What people order a truck or all of them, as traffic has to know it. Every order says what came of it.

An order changes what is known of a truck; whether the truck stands because of it is judged like everything else.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from pendula.fleet.driving.records import Record


class OrderKind(StrEnum):
    PAUSE = "PAUSE"
    RESUME = "RESUME"


class Order(Struct, frozen=True):
    """`robot_id` None: every truck. Orders of one tick take effect in the order of `at_ms`, then of `order_id`."""

    order_id: str
    kind: OrderKind
    robot_id: str | None = None
    at_ms: int = 0


class AppliedOrder(Struct, frozen=True):
    """What came of an order; `code` says why nothing did."""

    order_id: str
    code: str | None = None


def obeyed(orders: Iterable[Order], records: list[Record]) -> list[AppliedOrder]:
    """Every order in its turn."""
    return [_obey(order, records) for order in sorted(orders, key=lambda one: (one.at_ms, one.order_id))]


def _obey(order: Order, records: list[Record]) -> AppliedOrder:
    named = [one for one in records if order.robot_id in (None, one.robot_id)]
    if not named:
        return AppliedOrder(order.order_id, "UNKNOWN_ROBOT")
    for record in named:
        match order.kind:
            case OrderKind.PAUSE:
                record.paused = True
            case OrderKind.RESUME:
                record.paused = False
    return AppliedOrder(order.order_id)
