"""Possible receivers of a sender, with distance in hops and maximum amount."""

from collections import deque

from msgspec import UNSET, Struct, UnsetType

from pendula.credit.ledger.book import Book
from pendula.credit.ledger.payment import PaymentProcessor
from pendula.credit.money import MOST, text
from pendula.kernel.cancellation import check


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
