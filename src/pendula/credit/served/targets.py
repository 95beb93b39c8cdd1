"""Who can be paid: everybody whom more than nothing can reach now, with the fewest hops and how much at most."""

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
    """Fewest hops to each participant that value can reach now, over lines that let it through."""
    if not book.people.active[sender]:
        return {}
    found: dict[int, int] = {}
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
                found.setdefault(receiver, hops + 1)
            # Value that may end here need not be allowed to go on.
            if receiver not in passed and book.policy[h].mediates:
                passed.add(receiver)
                waiting.append((receiver, hops + 1))
    return found


def targets(book: Book, processor: PaymentProcessor, sender: int, most: int, *, amounts: bool) -> list[PaymentTarget]:
    """In the order of ids. Those whom the ledger itself would refuse the least amount are not among them."""
    names = book.people.names
    told = []
    for receiver, hops in sorted(reachable(book, sender, most).items()):
        check()
        largest = _largest(processor, sender, receiver) if amounts or book.has_blocked else None
        if largest == 0:
            continue
        shown = UNSET if largest is None or not amounts else text(largest)
        told.append(PaymentTarget(names[receiver], hops, shown))
    return told


def _largest(processor: PaymentProcessor, sender: int, receiver: int) -> int:
    """What the routes that a payment would take can carry in all."""
    found = processor.find_routes(sender, receiver, MOST)
    return getattr(found, "amount", 0)
