"""Resources: reserved at admission, consumed or returned at the end, in exact decimals.

Invariant of every resource: available + reserved + consumed - produced = initial.
"""

from collections.abc import Iterable, Iterator
from decimal import Context, Decimal, Inexact, Rounded
from typing import Any

from msgspec import Struct

from pendula.actions.model import Need

# The context raises instead of rounding; DIGITS_MOST keeps all sums below its precision.
EXACT = Context(prec=200, traps=[Inexact, Rounded])
ZERO = Decimal(0)


def plain(value: Decimal) -> Decimal:
    """The number in the form that canonical bytes give back, so that it is the same after a restore."""
    text = format(value, "f")
    return Decimal((text.rstrip("0").rstrip(".") if "." in text else text) or "0")


class Stock(Struct):
    """One resource."""

    available: Decimal
    reserved: Decimal = ZERO
    consumed: Decimal = ZERO
    produced: Decimal = ZERO
    initial: Decimal = ZERO

    def is_balanced(self) -> bool:
        supplied = EXACT.add(self.initial, self.produced)
        accounted = EXACT.add(EXACT.add(self.available, self.reserved), self.consumed)
        return supplied == accounted and min(self.available, self.reserved, self.consumed, self.produced) >= 0


class Shortage(Struct, frozen=True):
    name: str
    needed: Decimal
    available: Decimal


class ResourceTable:
    """All resources by name."""

    def __init__(self, stocks: dict[str, Stock]) -> None:
        self.stocks = stocks

    @classmethod
    def starting_with(cls, amounts: dict[str, Decimal]) -> "ResourceTable":
        return cls({name: Stock(amount, initial=amount) for name, amount in amounts.items()})

    def reserve(self, needs: Iterable[Need]) -> list[Shortage]:
        """Reserve everything, or nothing and return what is short."""
        needed = _sums(needs)
        short = [
            Shortage(name, amount, available)
            for name, amount in needed
            if amount > (available := self._available(name))
        ]
        if not short:
            for name, amount in needed:
                stock = self._stock(name)
                stock.available = EXACT.subtract(stock.available, amount)
                stock.reserved = EXACT.add(stock.reserved, amount)
        return short

    def finish(self, needs: Iterable[Need]) -> None:
        """At the end: consume or return the reserved amounts, add the produced ones."""
        for need in needs:
            stock = self._stock(need.name)
            if need.produce:
                stock.produced = EXACT.add(stock.produced, need.amount)
                stock.available = EXACT.add(stock.available, need.amount)
                continue
            stock.reserved = EXACT.subtract(stock.reserved, need.amount)
            if need.refund:
                stock.available = EXACT.add(stock.available, need.amount)
            else:
                stock.consumed = EXACT.add(stock.consumed, need.amount)

    def give_back(self, needs: Iterable[Need]) -> None:
        """Undo a reservation."""
        for need in needs:
            if not need.produce:
                stock = self._stock(need.name)
                stock.reserved = EXACT.subtract(stock.reserved, need.amount)
                stock.available = EXACT.add(stock.available, need.amount)

    def rows(self) -> dict[str, dict[str, Any]]:
        return {
            name: {"available": stock.available, "reserved": stock.reserved}
            for name, stock in sorted(self.stocks.items())
        }

    def broken(self) -> Iterator[str]:
        for name, stock in sorted(self.stocks.items()):
            if not stock.is_balanced():
                yield f"resource_conserves:{name}"

    def _available(self, name: str) -> Decimal:
        stock = self.stocks.get(name)
        return stock.available if stock else ZERO

    def _stock(self, name: str) -> Stock:
        return self.stocks.get(name) or self.stocks.setdefault(name, Stock(ZERO))


def _sums(needs: Iterable[Need]) -> list[tuple[str, Decimal]]:
    """The sum needed of each resource."""
    needed = [(need.name, need.amount) for need in needs if not need.produce]
    if len(needed) < 2:
        return needed
    sums: dict[str, Decimal] = {}
    for name, amount in needed:
        sums[name] = EXACT.add(sums.get(name, ZERO), amount)
    return list(sums.items())
