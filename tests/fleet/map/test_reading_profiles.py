"""Truck profiles: no silent defaults, every error value has a source."""

from decimal import Decimal
from typing import Any

import pytest

from pendula.documents import from_value, read_bytes
from pendula.fleet import read_profiles
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.map.reading import unread_profiles
from pendula.fleet.map.trucks import Source, doubts
from tests.fleet.documents import GOLDEN, changed, faults, golden


@pytest.mark.req("FLT-GEO-4", "FLT-API-2")
def test_the_profile_of_the_contract_is_the_reference_truck() -> None:
    assert read_profiles(read_bytes((GOLDEN / "RobotProfile.json").read_bytes())) == (FL_STD,)


@pytest.mark.req("FLT-GEO-4")
@pytest.mark.parametrize(
    "path",
    [
        *(f"geometry.{name}" for name in ("head", "tail", "width")),
        *(f"safety.safety{side}M" for side in ("Front", "Rear", "Side")),
        *(f"safety.{name}" for name in ("localizationErrorM", "trackingErrorM", "extraMarginM", "minFollowingGapM")),
        *(f"dynamics.{name}" for name in ("vMax", "accel", "a_brake", "controlLatencyS")),
    ],
)
def test_no_member_of_a_profile_has_a_silent_default(path: str) -> None:
    assert faults(read_profiles, changed(golden("RobotProfile"), path, ...)) == [f"$.{path}"]


@pytest.mark.req("FLT-GEO-4")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("geometry.width", 0),
        ("geometry.head", -1),
        ("dynamics.vMax", 0),
        ("dynamics.accel", 0),
        ("dynamics.a_brake", 0),
        ("safety.safetySideM", Decimal("-0.1")),
        ("safety.extraMarginM", "much"),
    ],
)
def test_impossible_numbers_of_a_truck_are_rejected(path: str, value: Any) -> None:
    assert faults(read_profiles, changed(golden("RobotProfile"), path, value)) == [f"$.{path}"]


@pytest.mark.req("FLT-GEO-4")
def test_a_truck_without_length_is_refused() -> None:
    form = changed(changed(golden("RobotProfile"), "geometry.head", 0), "geometry.tail", 0)

    assert faults(read_profiles, form) == ["$.geometry"]


@pytest.mark.req("FLT-GEO-5")
@pytest.mark.parametrize("name", ["localizationErrorM", "trackingErrorM"])
def test_an_error_value_without_a_source_is_refused(name: str) -> None:
    form = golden("RobotProfile")

    assert faults(read_profiles, changed(form, f"safety.{name}.source", ...)) == [f"$.safety.{name}.source"]
    assert faults(read_profiles, changed(form, f"safety.{name}.source", "GUESSED")) == [f"$.safety.{name}.source"]
    assert faults(read_profiles, changed(form, f"safety.{name}", Decimal("0.1"))) == [f"$.safety.{name}"]


@pytest.mark.req("FLT-GEO-5")
def test_a_percentile_is_doubted() -> None:
    assert FL_STD.localization_error.source is Source.MEASURED
    assert len(doubts(FL_STD)) == 1
    assert "localizationErrorM" in doubts(FL_STD)[0]


def test_profiles_come_alone_in_a_list_or_under_their_name() -> None:
    form = golden("RobotProfile")

    for document in (form, [form], {"profiles": [form]}):
        assert read_profiles(from_value(document)) == (FL_STD,)


@pytest.mark.req("FLT-MAP-3", "FLT-GEO-4")
def test_misspelt_members_of_a_profile_are_warnings_with_the_nearest_name() -> None:
    form = golden("RobotProfile")
    form["safety"]["headingErrRad"] = 0.01
    form["colour"] = "red"

    found = unread_profiles(from_value(form))

    assert len(found) == 2
    assert any("headingErrorRad" in finding.message for finding in found)
    assert unread_profiles(from_value({"profiles": [golden("RobotProfile")]})) == ()
