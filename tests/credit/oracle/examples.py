"""Small scenarios and debts in short notation, for worked examples."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.credit.oracle.money import exact, text
from tests.credit.oracle.world import Debts


def scenario(people: str, lines: Sequence[tuple[str, str, Any]], **more: Any) -> dict[str, Any]:
    """A scenario in UAH; a line is (creditor, debtor, limit)."""
    return {
        "schema_version": "scenario/1",
        "scenario_id": "example",
        "equivalents": ["UAH"],
        "participants": [{"id": who, "type": "person"} for who in people],
        "trustlines": [{"from": a, "to": b, "limit": limit, "equivalent": "UAH"} for a, b, limit in lines],
        **more,
    }


def owing(debts: Mapping[str, Any]) -> Debts:
    """Debts from `{"A>B": 30}`: A owes B 30."""
    return {("UAH", *pair.split(">")): exact(amount) for pair, amount in debts.items()}  # type: ignore[misc]


def shown(debts: Debts) -> dict[str, str]:
    return {f"{debtor}>{creditor}": text(amount, 2) for (_, debtor, creditor), amount in sorted(debts.items())}
