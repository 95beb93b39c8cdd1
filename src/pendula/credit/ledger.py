"""Who owes whom: debts, limits and capacities in exact atoms, kept up hop by hop.

A line from creditor v to debtor u is one number `h`; it governs the hop u -> v of a payment. `owed[h]` is what the
debtor owes the creditor, negative where it is the other way round, so that a pair never owes in both directions.
`room[h]`, the capacity of the hop, is limit - owed - reserved. A payment touches its hops and nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence

from pendula.credit.model import LineStatus, Participant, ParticipantStatus, Policy, Trustline
from pendula.credit.money import text_8

Hops = Sequence[tuple[int, int]]


class People:
    """The participants in the order of their ids; a participant is its place in that order."""

    def __init__(self, participants: Iterable[Participant]) -> None:
        self.all: list[Participant] = sorted(participants, key=lambda one: one.id)
        self.names = [one.id for one in self.all]
        self.index = {name: node for node, name in enumerate(self.names)}
        self.active = [one.status is ParticipantStatus.ACTIVE for one in self.all]

    def __len__(self) -> int:
        return len(self.all)


class Book:
    """The ledger of one equivalent. Lines are in the order (creditor, debtor)."""

    def __init__(self, code: str, people: People, lines: Iterable[Trustline]) -> None:
        self.code = code
        self.people = people
        index = people.index
        rows = sorted(lines, key=lambda one: (one.creditor, one.debtor))
        self.creditor = [index[one.creditor] for one in rows]
        self.debtor = [index[one.debtor] for one in rows]
        self.limit = [one.limit for one in rows]
        self.status = [one.status for one in rows]
        self.policy: list[Policy] = [one.policy for one in rows]
        self.owed = [0] * len(rows)
        self.reserved: dict[int, int] = {}
        self.room = list(self.limit)
        self.hop: list[dict[int, int]] = [{} for _ in people.names]
        for h, (v, u) in enumerate(zip(self.creditor, self.debtor, strict=True)):
            self.hop[u][v] = h
        self.back = [self.hop[v].get(u, -1) for v, u in zip(self.creditor, self.debtor, strict=True)]
        self.debts = [0] * len(people)  # what each participant owes in all
        self.claims = [0] * len(people)  # what each participant is owed in all
        self.total = 0
        self.touched: dict[int, None] = {}
        self.changed_lines: dict[int, None] = {}
        self.topology = 0
        self._wire()

    def __len__(self) -> int:
        return len(self.limit)

    def _wire(self) -> None:
        """The ways value can take: hops of live lines, neighbours in the order of their ids."""
        count = len(self.people)
        self.ways_out: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.ways_in: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.through_out: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.through_in: list[list[tuple[int, int]]] = [[] for _ in range(count)]
        self.has_blocked = False
        self.active_lines = sum(status is LineStatus.ACTIVE for status in self.status)
        for h in range(len(self.limit)):
            if not self.live(h):
                continue
            u, v, policy = self.debtor[h], self.creditor[h], self.policy[h]
            # One tuple serves two lists: at a hundred thousand lines that is half of the memory.
            there, here = (v, h), (u, h)
            self.ways_out[u].append(there)
            self.ways_in[v].append(here)
            if policy.mediates:
                self.through_out[u].append(there)
                self.through_in[v].append(here)
            self.has_blocked = self.has_blocked or bool(policy.blocked)
        for ways in (self.ways_out, self.through_out, self.ways_in, self.through_in):
            for way in ways:
                way.sort()
        self.topology += 1

    def live(self, h: int) -> bool:
        """Whether value may flow over the line: it is active and so are both ends."""
        active = self.people.active
        return self.status[h] is LineStatus.ACTIVE and active[self.creditor[h]] and active[self.debtor[h]]

    def line(self, creditor: str, debtor: str) -> int | None:
        """The number of the line between two ids."""
        index = self.people.index
        u, v = index.get(debtor), index.get(creditor)
        return None if u is None or v is None else self.hop[u].get(v)

    def debt(self, h: int) -> int:
        """What the debtor of the line owes the creditor; 0 where it is the other way round."""
        return max(0, self.owed[h])

    def owes(self, u: int, v: int) -> int:
        """What `u` owes `v`."""
        h = self.hop[u].get(v)
        return 0 if h is None else max(0, self.owed[h])

    def position(self, node: int) -> int:
        """What the participant is owed less what it owes."""
        return self.claims[node] - self.debts[node]

    def move(self, h: int, amount: int) -> None:
        """Value over a hop: the creditor's debt to the debtor shrinks first, then the debtor's grows.

        A negative amount takes a hop back, or clears a debt.
        """
        owed, back = self.owed, self.back[h]
        before = owed[h]
        after = before + amount
        owed[h] = after
        self.room[h] -= amount
        u, v = self.debtor[h], self.creditor[h]
        if before >= 0 and after >= 0:
            self.debts[u] += amount
            self.claims[v] += amount
            self.total += amount
        else:
            self._cross(u, v, before, after)
        self.touched[h] = None
        if back >= 0:
            owed[back] = -after
            self.room[back] += amount
            self.touched[back] = None

    def _cross(self, u: int, v: int, before: int, after: int) -> None:
        grown = max(0, after) - max(0, before)
        shrunk = max(0, -before) - max(0, -after)
        self.debts[u] += grown
        self.claims[v] += grown
        self.debts[v] -= shrunk
        self.claims[u] -= shrunk
        self.total += grown - shrunk

    def reserve(self, hops: Hops) -> int | None:
        """Hold capacity for all hops or for none; the number of the first hop that has too little, or None."""
        room, reserved = self.room, self.reserved
        for done, (h, amount) in enumerate(hops):
            if room[h] < amount:
                for other, held in hops[:done]:
                    self._let_go(other, held)
                return h
            room[h] -= amount
            reserved[h] = reserved.get(h, 0) + amount
        return None

    def release(self, hops: Hops) -> None:
        for h, amount in hops:
            self._let_go(h, amount)

    def _let_go(self, h: int, amount: int) -> None:
        self.room[h] += amount
        left = self.reserved[h] - amount
        if left:
            self.reserved[h] = left
        else:
            del self.reserved[h]

    def set_limit(self, h: int, limit: int) -> None:
        """Another limit; the planner and the next payment see it at once."""
        before = self.limit[h]
        self.room[h] += limit - before
        self.limit[h] = limit
        self.touched[h] = self.changed_lines[h] = None
        if (before > 0) != (limit > 0):
            self.topology += 1

    def set_status(self, lines: Iterable[int], status: LineStatus) -> None:
        for h in lines:
            self.status[h] = status
            self.touched[h] = self.changed_lines[h] = None
        self._wire()

    def rewire(self) -> None:
        """Participants have changed their status."""
        self._wire()

    def lines(self) -> Iterator[Trustline]:
        names = self.people.names
        for h, limit in enumerate(self.limit):
            ends = names[self.creditor[h]], names[self.debtor[h]]
            yield Trustline(self.code, *ends, limit, self.policy[h], self.status[h])

    def debt_rows(self) -> Iterator[tuple[str, str, int]]:
        """Every debt as (debtor, creditor, atoms), in that order."""
        names = self.people.names
        rows = [(self.debtor[h], self.creditor[h], owed) for h, owed in enumerate(self.owed) if owed > 0]
        for u, v, owed in sorted(rows):
            yield names[u], names[v], owed

    def broken(self) -> Iterator[str]:
        """Invariants that do not hold, told from the debts alone."""
        debts, claims = [0] * len(self.people), [0] * len(self.people)
        for h, owed in enumerate(self.owed):
            back = self.back[h]
            if back >= 0 and self.owed[back] != -owed:
                yield f"{self.code}: a pair owes in one direction only"
            if owed < 0 and back < 0:
                yield f"{self.code}: a debt has its line"
            if owed > self.limit[h] and self.status[h] is LineStatus.ACTIVE:
                yield f"{self.code}: no debt is above its limit"
            if self.room[h] != self.limit[h] - owed - self.reserved.get(h, 0):
                yield f"{self.code}: capacities are up to date"
            if owed > 0:
                debts[self.debtor[h]] += owed
                claims[self.creditor[h]] += owed
        if debts != self.debts or claims != self.claims or sum(debts) != self.total:
            yield f"{self.code}: the sums of debts are up to date"
        if sum(claims) != sum(debts):
            yield f"{self.code}: all positions together are zero"

    def lately_broken(self) -> Iterator[str]:
        """The same for what was touched since the last look; each tick asks this, at the cost of what it touched."""
        owed, limit, back, status = self.owed, self.limit, self.back, self.status
        for h in self.touched:
            if owed[h] > limit[h] and status[h] is LineStatus.ACTIVE:
                yield f"{self.code}: no debt is above its limit"
            if back[h] >= 0 and owed[back[h]] != -owed[h]:
                yield f"{self.code}: a pair owes in one direction only"
        if sum(self.debts) != self.total or sum(self.claims) != self.total:
            yield f"{self.code}: all positions together are zero"


class LedgerText:
    """The ledger as the lines of text its digest is made of; only what changed is written again."""

    def __init__(self, book: Book) -> None:
        self._book = book
        order = sorted(range(len(book)), key=lambda h: (book.debtor[h], book.creditor[h]))
        self._place = [0] * len(book)
        for place, h in enumerate(order):
            self._place[h] = place
        self._debts = [b""] * len(book)
        self._lines = [b""] * len(book)
        self._all_lines: bytes | None = None
        for h in range(len(book)):
            self._write_debt(h)
            self._write_line(h)

    def refresh(self, touched: Iterable[int], changed: Iterable[int]) -> None:
        for h in touched:
            self._write_debt(h)
        for h in changed:
            self._write_line(h)
            self._all_lines = None

    def parts(self) -> tuple[bytes, bytes]:
        if self._all_lines is None:
            self._all_lines = b"".join(self._lines)
        return b"".join(self._debts), self._all_lines

    def _write_debt(self, h: int) -> None:
        book, owed = self._book, self._book.owed[h]
        if owed <= 0:
            self._debts[self._place[h]] = b""
            return
        names = book.people.names
        text = f"{book.code}|{names[book.debtor[h]]}|{names[book.creditor[h]]}|{text_8(owed)}\n"
        self._debts[self._place[h]] = text.encode()

    def _write_line(self, h: int) -> None:
        book, names = self._book, self._book.people.names
        ends = f"{names[book.creditor[h]]}|{names[book.debtor[h]]}"
        self._lines[h] = f"{book.code}|{ends}|{text_8(book.limit[h])}|{book.status[h].value}\n".encode()
