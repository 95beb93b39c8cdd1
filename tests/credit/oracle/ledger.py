"""The books: capacity of a hop, its effect on debts, invariants, and the text of the digest."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from tests.credit.oracle.money import NOTHING, text
from tests.credit.oracle.world import Debts, Lines, Name, World


def capacities(world: World, equivalent: str) -> dict[tuple[str, str], Fraction]:
    """The capacity of each hop u to v, zero included; a hop without an open line is absent."""
    return {
        (debtor, creditor): max(
            NOTHING,
            line.limit - world.debt(equivalent, debtor, creditor) + world.debt(equivalent, creditor, debtor),
        )
        for (_, creditor, debtor), line in world.open_lines(equivalent).items()
    }


def apply_hop(debts: Debts, equivalent: str, payer: str, payee: str, amount: Fraction) -> None:
    """Pay back what the payee owes the payer, then add a debt of the payer."""
    back = min(amount, debts.get((equivalent, payee, payer), NOTHING))
    change(debts, (equivalent, payee, payer), -back)
    change(debts, (equivalent, payer, payee), amount - back)


def change(debts: Debts, name: Name, by: Fraction) -> None:
    debts[name] = debts.get(name, NOTHING) + by
    if debts[name] < 0:
        raise AssertionError(f"debt {name} below zero")
    if debts[name] == 0:
        del debts[name]


def positions(debts: Mapping[Name, Fraction], equivalent: str) -> dict[str, Fraction]:
    """Claims minus debts of each participant; positions of zero are absent."""
    net: dict[str, Fraction] = {}
    for (code, debtor, creditor), amount in debts.items():
        if code == equivalent:
            net[debtor] = net.get(debtor, NOTHING) - amount
            net[creditor] = net.get(creditor, NOTHING) + amount
    return {who: amount for who, amount in net.items() if amount != 0}


def broken_laws(debts: Debts, lines: Lines) -> list[str]:
    """Every violation of the limit and of symmetry, in words."""
    broken = []
    for (equivalent, debtor, creditor), amount in sorted(debts.items()):
        line = lines.get((equivalent, creditor, debtor))
        if line is not None and line.status == "active" and amount > line.limit:
            broken.append(f"{debtor} owes {creditor} {amount} {equivalent}, limit {line.limit}")
        if (equivalent, creditor, debtor) in debts:
            broken.append(f"{debtor} and {creditor} owe each other {equivalent}")
        if amount <= 0:
            broken.append(f"{debtor} owes {creditor} {amount} {equivalent}")
    return broken


def digest_text(world: World, tick: int) -> Iterator[str]:
    """The lines that the ledger digest includes after a tick."""
    yield f"tick|{tick}\n"
    for equivalent in world.equivalents:
        for (code, debtor, creditor), amount in sorted(world.debts.items()):
            if code == equivalent:
                yield f"{code}|{debtor}|{creditor}|{text(amount, 8)}\n"
        for (code, creditor, debtor), line in sorted(world.lines.items()):
            if code == equivalent:
                yield f"{code}|{creditor}|{debtor}|{text(line.limit, 8)}|{line.status}\n"
