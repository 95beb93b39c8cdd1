"""Parameters of long tests: a few in every run, the rest in `./test --campaign`."""

from collections.abc import Iterable
from typing import Any

import pytest


def campaign_after(count: int, values: Iterable[Any]) -> list[Any]:
    """`values` as parameters, all but the first `count` marked campaign."""
    return [
        value if index < count else pytest.param(value, marks=pytest.mark.campaign)
        for index, value in enumerate(values)
    ]
