"""The book of one equivalent: debts, limits and capacities in exact atoms, updated hop by hop.

A line from creditor v to debtor u is one number `h`; it governs the hop u -> v of a payment. `owed[h]` is what the
debtor owes the creditor, negative if the creditor owes the debtor, so that a pair never owes in both directions.
`capacity[h]`, the capacity of the hop, is limit - owed - reserved. A payment touches its hops and nothing else.
"""

from collections.abc import Iterable, Iterator, Sequence

from pendula.credit.model import LineStatus, Participant, ParticipantStatus, Policy, Trustline
from pendula.credit.money import text_8

Hops = Sequence[tuple[int, int]]


class People:
    """The participants in the order of their ids; the number of a participant is its index in that order."""

    def __init__(self, participants: Iterable[Participant]) -> None:
        self.all: list[Participant] = sorted(participants, key=lambda participant: participant.id)
        self.names = [participant.id for participant in self.all]
        self.index = {name: node for node, name in enumerate(self.names)}
        self.active = [participant.status is ParticipantStatus.ACTIVE for participant in self.all]

    def __len__(self) -> int:
        return len(self.all)


class Ways:
    """Neighbours with the numbers of the lines between, in the order of ids; computed on access."""

    def __init__(self, book: "Book", nodes: Sequence[tuple[int, ...]], *, inward: bool, through: bool) -> None:
        self._book = book
        self._nodes = nodes
        self._inward = inward
        self._through = through

    def __getitem__(self, node: int) -> list[tuple[int, int]]:
        hop, policy = self._book.hop, self._book.policy
        if self._inward:
            hops = [(other, hop[other][node]) for other in self._nodes[node]]
        else:
            hops = [(other, hop[node][other]) for other in self._nodes[node]]
        return [way for way in hops if policy[way[1]].mediates] if self._through else hops


class Book:
    """The ledger of one equivalent. Lines are in the order (creditor, debtor)."""

    def __init__(self, code: str, people: People, lines: Iterable[Trustline]) -> None:
        self.code = code
        self.people = people
        index = people.index
        rows = sorted(lines, key=lambda participant: (participant.creditor, participant.debtor))
        self.creditor = [index[row.creditor] for row in rows]
        self.debtor = [index[row.debtor] for row in rows]
        self.limit = [row.limit for row in rows]
        self.status = [row.status for row in rows]
        self.policy: list[Policy] = [row.policy for row in rows]
        self.owed = [0] * len(rows)
        self.reserved: dict[int, int] = {}
        self.capacity = list(self.limit)
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
        """Compute the neighbours over live lines, in the order of their ids.

        `open_out` and `open_in` are limited to lines that mediate and have capacity now. They hold only numbers of
        participants: searches unite them as sets, and pairs with the lines would take three times the memory.
        """
        count = len(self.people)
        out: list[list[int]] = [[] for _ in range(count)]
        into: list[list[int]] = [[] for _ in range(count)]
        self.has_blocked = False
        self.active_lines = sum(status is LineStatus.ACTIVE for status in self.status)
        for h in range(len(self.limit)):
            if self.live(h):
                out[self.debtor[h]].append(self.creditor[h])
                into[self.creditor[h]].append(self.debtor[h])
                self.has_blocked = self.has_blocked or bool(self.policy[h].blocked)
        self.out = [tuple(sorted(ways)) for ways in out]
        self.into = [tuple(sorted(ways)) for ways in into]
        # Most participants have only open lines: share the tuple.
        self.open_out = list(self.out)
        self.open_in = list(self.into)
        narrow = [h for h in range(len(self.limit)) if self.live(h) and not self._is_open(h)]
        # Once per participant: a hub has thousands of such lines.
        for u in dict.fromkeys(self.debtor[h] for h in narrow):
            self._open_out(u)
        for v in dict.fromkeys(self.creditor[h] for h in narrow):
            self._open_in(v)
        self.topology += 1

    def _is_open(self, h: int) -> bool:
        return self.capacity[h] > 0 and self.policy[h].mediates

    def _open_out(self, u: int) -> None:
        to = self.hop[u]
        self.open_out[u] = tuple(v for v in self.out[u] if self._is_open(to[v]))

    def _open_in(self, v: int) -> None:
        self.open_in[v] = tuple(u for u in self.into[v] if self._is_open(self.hop[u][v]))

    def widen(self, h: int, by: int) -> None:
        """Change the capacity of a hop; the only place where capacities change."""
        before = self.capacity[h]
        self.capacity[h] = before + by
        if (before > 0) != (before + by > 0) and self.policy[h].mediates and self.live(h):
            self._open_out(self.debtor[h])
            self._open_in(self.creditor[h])

    def set_policy(self, h: int, policy: Policy) -> None:
        """Replace the policy of a line; takes effect in the next search."""
        self.policy[h] = policy
        if self.live(h):
            self.has_blocked = self.has_blocked or bool(policy.blocked)
            self._open_out(self.debtor[h])
            self._open_in(self.creditor[h])

    @property
    def ways_out(self) -> Ways:
        return Ways(self, self.out, inward=False, through=False)

    @property
    def ways_in(self) -> Ways:
        return Ways(self, self.into, inward=True, through=False)

    @property
    def through_out(self) -> Ways:
        return Ways(self, self.out, inward=False, through=True)

    @property
    def through_in(self) -> Ways:
        return Ways(self, self.into, inward=True, through=True)

    def live(self, h: int) -> bool:
        """Whether payments may use the line: it and both ends are active."""
        active = self.people.active
        return self.status[h] is LineStatus.ACTIVE and active[self.creditor[h]] and active[self.debtor[h]]

    def line(self, creditor: str, debtor: str) -> int | None:
        """The number of the line between two ids."""
        index = self.people.index
        u, v = index.get(debtor), index.get(creditor)
        return None if u is None or v is None else self.hop[u].get(v)

    def debt(self, h: int) -> int:
        """What the debtor of the line owes the creditor; 0 if the creditor owes the debtor."""
        return max(0, self.owed[h])

    def owes(self, u: int, v: int) -> int:
        """What `u` owes `v`."""
        h = self.hop[u].get(v)
        return 0 if h is None else max(0, self.owed[h])

    def position(self, node: int) -> int:
        """What the participant is owed less what it owes."""
        return self.claims[node] - self.debts[node]

    def move(self, h: int, amount: int) -> None:
        """Move value over a hop: first reduces the debt of the creditor to the debtor, then adds to the debtor's.

        A negative amount reverts a hop or clears a debt.
        """
        owed, back = self.owed, self.back[h]
        before = owed[h]
        after = before + amount
        owed[h] = after
        self.widen(h, -amount)
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
            self.widen(back, amount)
            self.touched[back] = None

    def _cross(self, u: int, v: int, before: int, after: int) -> None:
        grown = max(0, after) - max(0, before)
        shrunk = max(0, -before) - max(0, -after)
        self.debts[u] += grown
        self.claims[v] += grown
        self.debts[v] -= shrunk
        self.claims[u] -= shrunk
        self.total += grown - shrunk

    def lacking(self, hops: Hops) -> int | None:
        """The first hop with too little capacity for all routes together, or None; reserves nothing."""
        capacity, needed = self.capacity, dict[int, int]()
        for h, amount in hops:
            needed[h] = needed.get(h, 0) + amount
            if capacity[h] < needed[h]:
                return h
        return None

    def reserve(self, hops: Hops) -> int | None:
        """Reserve capacity for all hops or none; returns the first hop with too little, or None."""
        capacity, reserved = self.capacity, self.reserved
        for done, (h, amount) in enumerate(hops):
            if capacity[h] < amount:
                for other, held in hops[:done]:
                    self._release(other, held)
                return h
            self.widen(h, -amount)
            reserved[h] = reserved.get(h, 0) + amount
        return None

    def release(self, hops: Hops) -> None:
        for h, amount in hops:
            self._release(h, amount)

    def _release(self, h: int, amount: int) -> None:
        self.widen(h, amount)
        left = self.reserved[h] - amount
        if left:
            self.reserved[h] = left
        else:
            del self.reserved[h]

    def set_limit(self, h: int, limit: int) -> None:
        """Change a limit; the planner and the next payment use it at once."""
        before = self.limit[h]
        self.widen(h, limit - before)
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
        """Update after participants changed their status."""
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
        """Invariants that do not hold, computed from the debts alone."""
        debts, claims = [0] * len(self.people), [0] * len(self.people)
        for h, owed in enumerate(self.owed):
            back = self.back[h]
            if back >= 0 and self.owed[back] != -owed:
                yield f"{self.code}: a pair owes in one direction only"
            if owed < 0 and back < 0:
                yield f"{self.code}: a debt has its line"
            if owed > self.limit[h] and self.status[h] is LineStatus.ACTIVE:
                yield f"{self.code}: no debt is above its limit"
            if self.capacity[h] != self.limit[h] - owed - self.reserved.get(h, 0):
                yield f"{self.code}: capacities are up to date"
            if owed > 0:
                debts[self.debtor[h]] += owed
                claims[self.creditor[h]] += owed
        if debts != self.debts or claims != self.claims or sum(debts) != self.total:
            yield f"{self.code}: the sums of debts are up to date"
        if sum(claims) != sum(debts):
            yield f"{self.code}: all positions together are zero"

    def lately_broken(self) -> Iterator[str]:
        """The same for lines touched since the last `settle`; cheap enough for each tick."""
        owed, limit, back, status = self.owed, self.limit, self.back, self.status
        for h in self.touched:
            if owed[h] > limit[h] and status[h] is LineStatus.ACTIVE:
                yield f"{self.code}: no debt is above its limit"
            if back[h] >= 0 and owed[back[h]] != -owed[h]:
                yield f"{self.code}: a pair owes in one direction only"
        if sum(self.debts) != self.total or sum(self.claims) != self.total:
            yield f"{self.code}: all positions together are zero"


class LedgerText:
    """The ledger as the text of its digest; only changed lines are rendered again."""

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
