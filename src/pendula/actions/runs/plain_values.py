"""Documents as other readers make them: YAML libraries give times as `datetime`."""

from datetime import datetime
from typing import Any


def with_texts(value: Any) -> Any:
    """`value` with each `datetime` as ISO 8601 text; everything else stays as it is."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: with_texts(member) for name, member in value.items()}
    if isinstance(value, list):
        return [with_texts(member) for member in value]
    return value
