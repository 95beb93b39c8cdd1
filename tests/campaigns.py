"""Parameters of long tests: a few in every run, the rest in `./test --campaign`."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

EXAMPLES = 100  # of the profile of `./test` and its campaign


def campaign_after(count: int, values: Iterable[Any]) -> list[Any]:
    """`values` as parameters, all but the first `count` marked campaign."""
    return [value if index < count else _campaign(value) for index, value in enumerate(values)]


def campaign_except(kept: Collection[Any], values: Iterable[Any]) -> list[Any]:
    """`values` as parameters, all but those in `kept` marked campaign."""
    return [value if value in kept else _campaign(value) for value in values]


def fewer_examples() -> settings:
    """For laws with expensive examples: a quarter of them in `./test`, all of them in `./test --long`."""
    examples = settings().max_examples
    return settings(max_examples=examples if examples > EXAMPLES else examples // 4)


def _campaign(value: Any) -> Any:
    if isinstance(value, ParameterSet):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.campaign], id=value.id)
    return pytest.param(value, marks=pytest.mark.campaign)
