"""Variations of a scenario: paths, set and multiplied values, and sweeps over them."""

from decimal import Decimal
from fractions import Fraction
from typing import Any
from xml.etree import ElementTree

import pytest

from pendula.credit.studies.chart import sweep_svg
from pendula.credit.studies.sweeps import InvalidGrid, sweep
from pendula.credit.studies.variations import InvalidVariation, names_a_place, split, vary
from pendula.documents import DocumentRefused, from_value
from pendula.kernel.canonical import decode, encode
from tests.credit.conftest import network

SVG = "{http://www.w3.org/2000/svg}"


def ring(**more: Any) -> Any:
    return decode(encode(network(("b", "a", 20), ("c", "b", "12.50"), ("a", "c", 8), **more)))


def limits(scenario: Any) -> dict[str, Any]:
    return {f"{line['from']}>{line['to']}": line["limit"] for line in scenario["trustlines"]}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("trustlines[*].limit*", "1.2", {"b>a": 24, "c>b": "15.00000000", "a>c": Decimal("9.6")}),
        ("trustlines[from=b].limit*", "0.5", {"b>a": 10, "c>b": "12.50", "a>c": 8}),
        ("trustlines[from=b,to=a].limit", "3", {"b>a": 3, "c>b": "12.50", "a>c": 8}),
        ("participants.*.limit*", "2", {"b>a": 40, "c>b": "25.00000000", "a>c": 16}),
        ("participants.c.limit*", "2", {"b>a": 20, "c>b": "25.00000000", "a>c": 8}),
        ("participants[id=a].limit", "1", {"b>a": 20, "c>b": "12.50", "a>c": 1}),
    ],
)
def test_limits_at_a_path_are_set_and_multiplied(path: str, value: str, expected: dict[str, Any]) -> None:
    assert limits(vary(ring(), [(path, value)])) == expected


def test_members_of_profiles_settings_and_policies_can_be_changed() -> None:
    profile = {"id": "retail", "props": {"tx_rate": Decimal("0.1")}}
    scenario = ring(behaviorProfiles=[profile], settings={"warmup": {"ticks": 5}})

    changes = [
        ("behaviorProfiles.retail.props.tx_rate*", "1.5"),
        ("settings.warmup.ticks", "9"),
        ("participants[id=a].status", "frozen"),
    ]
    variant: Any = vary(scenario, changes)

    assert variant["behaviorProfiles"][0]["props"]["tx_rate"] == Decimal("0.15")
    assert variant["settings"]["warmup"]["ticks"] == 9
    assert [participant.get("status") for participant in variant["participants"]] == ["frozen", None, None]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("participants.*.limit*1.2", ("participants.*.limit*", "1.2")),
        ("trustlines[from=a].limit=30", ("trustlines[from=a].limit", "30")),
        ("trustlines[*].limit*=0.8,1", ("trustlines[*].limit*", "0.8,1")),
    ],
)
def test_an_option_is_split_into_path_and_value(text: str, parts: tuple[str, str]) -> None:
    assert names_a_place(text)
    assert split(text) == parts


def test_names_of_settings_are_no_paths() -> None:
    assert not any(names_a_place(text) for text in ("clearing_policy=static", "cap=5", "settings=3", "trustlines"))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("trustlines[from=stranger].limit*", "2"),
        ("trustlines[*].limits*", "2"),
        ("trustlines[*]", "2"),
        ("trustlines[*].limit*", "much"),
        ("trustlines[*.limit", "2"),
        ("nothing.here", "2"),
    ],
)
def test_an_unknown_or_fixed_path_is_rejected(path: str, value: str) -> None:
    with pytest.raises(InvalidVariation) as refused:
        vary(ring(), [(path, value)])

    assert refused.value.details["path"] == path


def test_a_sweep_over_limits_runs_each_scenario() -> None:
    grid = {"trustlines[*].limit*": ["0.5", "1", "2"]}

    columns = sweep(from_value(ring()), grid, (1, 2), 6)

    assert columns.values["trustlines[*].limit*"] == ["0.5", "0.5", "1", "1", "2", "2"]
    assert len(set(columns.values["ledger_digest"])) == 6
    same = sweep(from_value(ring()), {}, (1, 2), 6)
    assert columns.values["ledger_digest"][2:4] == same.values["ledger_digest"]
    fixed = sweep(from_value(ring()), {}, (1, 2), 6, changes=[("trustlines[*].limit*", "2")])
    assert columns.values["ledger_digest"][4:] == fixed.values["ledger_digest"]


def test_an_invalid_variation_is_rejected_before_any_run() -> None:
    with pytest.raises(DocumentRefused):
        sweep(from_value(ring()), {"trustlines[*].limit": ["5", "-1"]}, (1,), 6)
    with pytest.raises(InvalidGrid):
        sweep(from_value(ring()), {"trustlines[*].limit": ["5", "5"]}, (1,), 6)


def test_a_sweep_of_one_setting_is_drawn_as_a_curve_over_its_values() -> None:
    grid = {"trustlines[*].limit*": ["0.5", "1", "2"]}
    columns = sweep(from_value(ring()), grid, (1, 2), 6)

    drawn = sweep_svg(columns, list(grid), "ring")

    root = ElementTree.fromstring(drawn)
    assert [element.text for element in root.iter(f"{SVG}text") if element.text in ("0.5", "1", "2")] == [
        "0.5",
        "1",
        "2",
    ] * 4
    assert len([element for element in root.iter(f"{SVG}path") if "line" in str(element.get("class"))]) == 4
    assert "Committed rate" in drawn
    assert "Total debt, UAH" in drawn


@pytest.mark.parametrize("third", [{}, {"routing_max_hops": ["1", "6"]}])
def test_a_sweep_of_several_settings_is_drawn_as_a_heat_map_with_intervals(third: dict[str, list[str]]) -> None:
    grid = {**third, "clearing_every_n_ticks": ["2", "5"], "trustlines[*].limit*": ["0.5", "1", "2"]}
    columns = sweep(from_value(ring()), grid, range(1, 7), 6)

    drawn = sweep_svg(columns, list(grid), "ring")

    root = ElementTree.fromstring(drawn)
    cells = [element for element in root.iter(f"{SVG}rect") if "heat" in str(element.get("class"))]
    assert len(cells) == 4 * len(columns) // 6, "a cell for each combination of each measure"
    assert not list(root.iter(f"{SVG}path")), "no line joins settings that are not neighbours"
    rates = sorted(Fraction(str(value)) for value in columns.values["committed_rate"][:6])
    middle = (rates[2] + rates[3]) / 2
    label = f"{float(middle):.3f}; {float(rates[0]):.3f} … {float(rates[-1]):.3f} with 96.9 %, 6 seeds"
    assert next(element.text for element in root.iter(f"{SVG}title")) == label
