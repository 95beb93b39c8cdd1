from decimal import Decimal

import pytest

from pendula.governance.model import DAY_US, Risk, has_faded, weight
from tests.governance.governed_objects import NOW, governed


@pytest.mark.req("JOB-SM-13")
def test_the_example_of_the_requirements() -> None:
    memory = governed("memory", "active", created_at=NOW - 61 * DAY_US, half_life=30 * DAY_US)

    assert weight(memory, NOW).quantize(Decimal("0.001")) == Decimal("0.244")
    assert has_faded(memory, Risk.LOW, NOW)
    assert not has_faded(memory, Risk.HIGH, NOW)


@pytest.mark.req("JOB-SM-13")
def test_two_half_lives_leave_a_quarter_which_is_not_below_the_threshold() -> None:
    memory = governed("memory", "active", created_at=NOW - 60 * DAY_US)

    assert weight(memory, NOW) == Decimal("0.25")
    assert not has_faded(memory, Risk.LOW, NOW)
    assert has_faded(memory, Risk.LOW, NOW + 1)


@pytest.mark.req("JOB-SM-13")
@pytest.mark.parametrize("newer", ["last_accessed_at", "last_reinforced_at"])
def test_use_restarts_the_decay(newer: str) -> None:
    memory = governed("memory", "active", created_at=NOW - 600 * DAY_US, **{newer: NOW})

    assert weight(memory, NOW) == 1


@pytest.mark.req("JOB-SM-13")
def test_reinforcement_and_impact_slow_the_decay() -> None:
    # 30 days * (1 + ln 3) * (1 + 0.5): the exponent is 60 / 94.43...
    memory = governed(
        "memory",
        "active",
        created_at=NOW - 60 * DAY_US,
        reinforcement_count=2,
        impact_weight=Decimal("0.5"),
    )

    assert weight(memory, NOW).quantize(Decimal("0.00001")) == Decimal("0.64379")
