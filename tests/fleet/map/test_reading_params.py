"""Ranges of compile parameters."""

from decimal import Decimal

from pendula.documents import from_value
from pendula.fleet import read_params
from pendula.fleet.model import CompileParams, Granularity
from pendula.kernel.canonical import Json
from tests.fleet.documents import faults


def test_parameters_have_their_ranges() -> None:
    given: Json = {"cellLenM": Decimal("0.75"), "conflictGranularity": "edge", "offRouteExtraOnBendM": Decimal("0.1")}

    assert read_params(from_value(given)) == CompileParams(
        cell_len_um=750_000, granularity=Granularity.EDGE, bend_extra_um=100_000
    )
    assert read_params(from_value({})) == CompileParams()
    bad: Json = {"cellLenM": 2, "polylineStepM": Decimal("0.3"), "conflictGranularity": "both"}
    assert sorted(faults(read_params, bad)) == ["$.cellLenM", "$.conflictGranularity", "$.polylineStepM"]
