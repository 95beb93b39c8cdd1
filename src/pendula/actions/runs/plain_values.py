"""Converts the `datetime` values that YAML libraries produce into text."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

DEEPEST = 6  # times of a document are not nested deeper; deeper values are user data
SUBMITTED = "actions_submitted"


def with_texts(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a document with each `datetime` as ISO 8601 text; params of submissions are not changed."""
    copy = {name: value if name == SUBMITTED else _as_texts(value, DEEPEST) for name, value in document.items()}
    steps = copy.get(SUBMITTED)
    if isinstance(steps, list):
        copy[SUBMITTED] = [submission_with_text(step) for step in steps]
    return copy


def submission_with_text(step: Any) -> Any:
    """A submission whose `submitted_at` is text."""
    if isinstance(step, dict) and isinstance(at := step.get("submitted_at"), datetime):
        return {**step, "submitted_at": at.isoformat()}
    return step


def _as_texts(value: Any, depth: int) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if depth and isinstance(value, dict):
        return {name: _as_texts(member, depth - 1) for name, member in value.items()}
    if depth and isinstance(value, list):
        return [_as_texts(member, depth - 1) for member in value]
    return value
