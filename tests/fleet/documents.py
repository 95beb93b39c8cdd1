"""Golden payloads of the contracts, and the faults a reader finds when a member is changed."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pendula.documents import DocumentRefused, from_value

GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> Any:
    return json.loads((GOLDEN / f"{name}.json").read_text(), parse_float=Decimal)


def changed(form: Any, path: str, value: Any) -> Any:
    """The form with one member replaced, or removed if the value is Ellipsis."""
    first, _, rest = path.partition(".")
    if rest:
        return {**form, first: changed(form[first], rest, value)}
    if value is ...:
        return {name: value for name, value in form.items() if name != first}
    return {**form, first: value}


def faults(read: Any, form: Any) -> list[str]:
    """The places of the faults that a reader finds in a form."""
    with pytest.raises(DocumentRefused) as refused:
        read(from_value(form))
    return [fault.path for fault in refused.value.faults]
