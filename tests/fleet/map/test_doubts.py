"""Error values that are percentiles are not bounds, however they are described."""

import pytest
from msgspec.structs import replace

from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.trucks import ErrorValue, Source, doubts


def doubted(basis: str) -> bool:
    return bool(doubts(replace(FL_STD, localization_error=ErrorValue(50_000, Source.MEASURED, basis))))


@pytest.mark.req("FLT-GEO-5")
@pytest.mark.parametrize(
    "basis",
    [
        *("P95", "P95, hall test 2026-01", "p99 of 10 000 poses", "P99,5", "95th percentile", "99.5th percentile"),
        *("percentile 95", "99 %", "99% of all poses", "3 sigma", "2σ", "3-Sigma of the supplier"),
    ],
)
def test_a_percentile_that_is_exceeded_now_and_then_is_doubted(basis: str) -> None:
    assert doubted(basis)


@pytest.mark.req("FLT-GEO-5")
@pytest.mark.parametrize(
    "basis",
    [
        *("P99.9", "P99,99", "99.9th percentile", "99.99 %", "4 sigma", "100 % of all poses", "the worst of 2026-01"),
        *("the worst that was measured, and 10 % more", "data sheet, page 95", "hall P3"),
    ],
)
def test_a_bound_is_not_doubted(basis: str) -> None:
    assert not doubted(basis)
