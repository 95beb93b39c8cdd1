"""Two settings over many seeds: exact medians and intervals, the verdict of the protocol, and its picture."""

from fractions import Fraction
from itertools import product
from statistics import median as plain_median
from xml.etree import ElementTree

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.authoring.villages import village
from pendula.credit.reading import read_settings
from pendula.credit.settings import Settings, change_settings
from pendula.credit.studies.chart import PANELS_MOST, comparison_svg
from pendula.credit.studies.comparison import Comparison, Curve, Panel, compare, judge
from pendula.credit.studies.figures import CONFIDENCE, Figures, Interval, median, median_interval, quantile
from pendula.documents import DocumentRefused, Format, from_value, read_bytes
from pendula.kernel.errors import WrongUsage

SVG = "{http://www.w3.org/2000/svg}"
STATIC = change_settings(Settings(), {"amount_cap": "none", "clearing_every_n_ticks": "5"})
ADAPTIVE = change_settings(STATIC, {"clearing_policy": "adaptive"})
SEEDS = range(1, 7)


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare_briefly(STATIC, ADAPTIVE)


def compare_briefly(a: Settings, b: Settings, workers: int = 1) -> Comparison:
    """The smallest comparison that the protocol allows."""
    names = (a.clearing_policy.value, b.clearing_policy.value)
    return compare(from_value(village(8, 7)), a, b, SEEDS, 36, workers, names=names, intensity=25)


def figures(seed: int = 1, committed: int = 0, no_capacity: int = 0, errors: int = 0, over: int = 0) -> Figures:
    """A run of 10 000 attempts."""
    rejected = 10_000 - committed - errors
    counts = {"attempts": 10_000, "committed": committed, "rejected": rejected, "errors": errors, "timeouts": 0}
    calls = {"calls": 0, "work": 0, "over_budget": over, "intervals": (), "cycles": 0}
    amounts: dict[str, dict[str, int]] = {"cleared": {}, "reduced": {}, "debts": {}, "demand": {}}
    return msgspec.convert(
        {"seed": seed, "ticks": 120, "state": "running", "dropped": 0, "plan": "", "ledger": ""}
        | {"no_capacity": no_capacity, "no_route_at_all": 0, **counts, **calls, **amounts},
        Figures,
    )


def test_a_side_that_was_never_active_is_reported() -> None:
    never = compare_briefly(
        STATIC, change_settings(ADAPTIVE, {"adaptive_no_capacity_high": "1", "adaptive_window_ticks": "30"})
    )

    assert never.same == "B was never active: adaptive equals the static cadence below adaptive_no_capacity_high (1)"
    hops = compare_briefly(STATIC, change_settings(STATIC, {"adaptive_window_ticks": "9"}))
    assert hops.same == "Both sides have equal results with every seed: the different settings had no effect"
    assert compare_briefly(STATIC, change_settings(STATIC, {"clearing_enabled": "off"})).same is None


def failing(left: list[Figures], right: list[Figures], skip: int = 30) -> list[str]:
    verdict = judge(left, right, skip)
    names = [check.name for check in verdict.checks if not check.passed]
    assert verdict.passed is not bool(names)
    return names


@pytest.mark.parametrize(
    ("count", "rank", "coverage"),
    [
        (1, 1, Fraction(0)),
        (5, 1, Fraction(15, 16)),
        (6, 1, Fraction(31, 32)),
        (9, 2, Fraction(492, 512)),
        (20, 6, 1 - 2 * Fraction(1 + 20 + 190 + 1140 + 4845 + 15504, 2**20)),
    ],
)
def test_the_interval_is_that_of_the_sign_test(count: int, rank: int, coverage: Fraction) -> None:
    values = [Fraction(number) for number in range(1, count + 1)]

    assert median_interval(values) == Interval(Fraction(rank), Fraction(count + 1 - rank), coverage)


@pytest.mark.parametrize("count", range(1, 13))
def test_the_coverage_equals_a_count_of_all_outcomes(count: int) -> None:
    interval = median_interval([Fraction(number) for number in range(count)])
    assert interval is not None
    rank = int(interval.low) + 1

    # How many of `count` values lie below the true median: each does with the probability of a half.
    held = sum(rank <= sum(below) <= count - rank for below in product((0, 1), repeat=count))
    tighter = sum(rank + 1 <= sum(below) <= count - rank - 1 for below in product((0, 1), repeat=count))

    assert interval.coverage == Fraction(held, 2**count)
    assert Fraction(tighter, 2**count) < CONFIDENCE


def test_a_difference_has_a_side_only_with_enough_coverage() -> None:
    five, six = median_interval([Fraction(1)] * 5), median_interval([Fraction(1)] * 6)
    crossing = median_interval([Fraction(-1), *[Fraction(1)] * 5])
    assert five is not None
    assert six is not None
    assert crossing is not None

    assert (five.side, six.side, crossing.side) == (0, 1, 0)


@given(st.lists(st.fractions(), min_size=1, max_size=12))
def test_medians_are_exact(values: list[Fraction]) -> None:
    assert median(values) == plain_median(values)
    assert quantile(sorted(values), Fraction(0)) == min(values)
    assert quantile(sorted(values), Fraction(1)) == max(values)


def test_empty_samples_have_no_median() -> None:
    assert median([None, None]) is None
    assert median_interval([]) is None


@pytest.mark.req("SIM-ADP-19")
@pytest.mark.parametrize(("committed", "fails"), [(5800, []), (5799, ["committed_rate"])])
def test_the_median_committed_rate_may_fall_up_to_the_margin(committed: int, fails: list[str]) -> None:
    left = [figures(seed, 6000 + seed) for seed in (-2, -1, 0, 1, 2)]
    right = [figures(seed, value) for seed, value in enumerate((0, 1, committed, 9998, 9999))]

    assert failing(left, right) == fails


@pytest.mark.req("SIM-ADP-19")
@pytest.mark.parametrize(("refused", "fails"), [(4200, []), (4201, ["no_capacity_rate"])])
def test_the_median_no_capacity_rate_may_rise_up_to_the_margin(refused: int, fails: list[str]) -> None:
    left = [figures(seed, 5000, 4000) for seed in range(5)]
    right = [figures(seed, 5000, refused) for seed in range(5)]

    assert failing(left, right) == fails


@pytest.mark.req("SIM-ADP-19")
def test_errors_exceeded_budgets_and_a_short_protocol_fail() -> None:
    sound = [figures(seed, 5000) for seed in range(5)]

    assert failing(sound, sound) == []
    assert failing(sound[:4], sound[:4]) == ["seeds"]
    assert failing(sound, sound, skip=29) == ["skip"]
    assert failing([*sound[:4], figures(4, 5000, errors=1)], sound) == ["errors"]
    assert failing(sound, [*sound[:4], figures(4, 5000, over=1)]) == ["budgets"]


def test_a_comparison_without_payments_fails_both_rates() -> None:
    nothing = [msgspec.structs.replace(figures(seed), attempts=0) for seed in range(5)]

    assert failing(nothing, nothing) == ["committed_rate", "no_capacity_rate"]


@pytest.mark.req("SIM-ADP-19", "SIM-TEST-19")
def test_static_and_adaptive_are_compared_by_the_protocol(comparison: Comparison) -> None:
    rows = {row.measure: row for row in comparison.rows}
    checks = {check.name: check for check in comparison.verdict.checks}

    assert list(rows) == [
        *("committed_rate", "no_capacity_rate", "errors", "clearing_calls", "mean_interval", "mean_cost"),
        *("total_work", "wanted_UNIT", "volume_UNIT", "served_share_UNIT"),
        *("cleared_cycles", "cleared_amount_UNIT", "debt_reduction_UNIT", "total_debt_UNIT"),
    ]
    assert comparison.settings == {"SIMULATOR_CLEARING_POLICY": ("static", "adaptive")}
    assert all(checks[name].passed for name in ("seeds", "skip", "errors", "budgets"))
    assert checks["committed_rate"].passed == (
        Fraction(rows["committed_rate"].b or 0) >= _lowest(rows["committed_rate"].a)
    )
    assert {row.pairs for row in comparison.rows if row.measure != "mean_interval"} >= {6}


def _lowest(median_of_a: str | None) -> Fraction:
    return Fraction(median_of_a or 0) - Fraction(2, 100)


def test_medians_and_differences_come_from_the_runs(comparison: Comparison) -> None:
    values = [Fraction(value or 0) for value in comparison.columns.values["total_debt_UNIT"]]
    a, b = values[:6], values[6:]
    row = comparison.rows[-1]

    assert [Fraction(text or 0) for text in (row.a, row.b)] == [plain_median(a), plain_median(b)]
    differences = [after - before for before, after in zip(a, b, strict=True)]
    assert Fraction(row.difference or 0) == plain_median(differences)
    assert (Fraction(row.low or 0), Fraction(row.high or 0)) == (min(differences), max(differences))
    assert row.coverage == "0.96875000"


def test_swapped_sides_negate_every_difference(comparison: Comparison) -> None:
    other = compare_briefly(ADAPTIVE, STATIC)

    assert [row for row in comparison.rows if row.difference is not None]
    for row, turned in zip(comparison.rows, other.rows, strict=True):
        assert (row.a, row.b, row.pairs) == (turned.b, turned.a, turned.pairs)
        if row.difference is not None:
            assert Fraction(row.difference) == -Fraction(turned.difference or 0)
            assert Fraction(row.low or 0) == -Fraction(turned.high or 0)


@pytest.mark.req("SIM-TEST-20")
def test_two_workers_give_the_same_comparison_as_one(comparison: Comparison) -> None:
    again = compare_briefly(STATIC, ADAPTIVE, workers=2)

    assert again == comparison
    assert comparison_svg(again) == comparison_svg(comparison)


def test_equal_settings_are_rejected() -> None:
    with pytest.raises(WrongUsage, match="nothing to compare"):
        compare(from_value(village(12, 7)), STATIC, STATIC)


def test_curves_are_medians_between_quartiles_over_seeds(comparison: Comparison) -> None:
    rate, served, debt = comparison.panels

    assert (rate.unit, served.unit, debt.unit) == ("", "", "UNIT")
    assert len(rate.a.middle) == len(debt.b.high) == 36
    for curve in (rate.a, rate.b, served.a, served.b, debt.a, debt.b):
        for low, middle, high in zip(curve.low, curve.middle, curve.high, strict=True):
            assert low is not None
            assert middle is not None
            assert high is not None
            assert low <= middle <= high
    assert debt.a.middle[-1] == Fraction(comparison.rows[-1].a or 0)


def test_the_picture_names_each_curve_where_it_ends(comparison: Comparison) -> None:
    picture = ElementTree.fromstring(comparison_svg(comparison))
    texts = [text.text for text in picture.iter(f"{SVG}text")]

    assert texts.count("static") == texts.count("adaptive") == 3
    assert texts.count("not counted") == 3
    assert "Total debt, UNIT" in texts
    assert len([path for path in picture.iter(f"{SVG}path") if path.get("class") == "band a"]) == 3
    assert "prefers-color-scheme:dark" in comparison_svg(comparison)


def test_names_in_the_picture_are_escaped_text(comparison: Comparison) -> None:
    hostile = msgspec.structs.replace(comparison, names=('<script>"&', "\x00\u202ex"), scenario_id="</svg><b>")

    picture = ElementTree.fromstring(comparison_svg(hostile))

    assert {element.tag.removeprefix(SVG) for element in picture.iter()} == {
        *("svg", "style", "rect", "text", "line", "g", "title", "path")
    }


def test_a_curve_breaks_where_values_are_missing(comparison: Comparison) -> None:
    points = (Fraction(1, 2), None, Fraction(1, 3), Fraction(1, 4))
    curve, nothing = Curve(points, points, points), Curve((None,), (None,), (None,))
    panels = (Panel("rate", "", curve, nothing), *comparison.panels[2:] * PANELS_MOST)
    broken = msgspec.structs.replace(comparison, panels=panels, ticks=4, skip=0)

    picture = ElementTree.fromstring(comparison_svg(broken))

    line = next(path for path in picture.iter(f"{SVG}path") if path.get("class") == "line a")
    assert line.get("d", "").count("M") == 2
    assert "Not drawn: 1 more panel." in [text.text for text in picture.iter(f"{SVG}text")]


def test_a_settings_file_accepts_variable_names_and_plain_values() -> None:
    text = b"clearing_policy: adaptive\nSIMULATOR_REAL_AMOUNT_CAP: null\nclearing_enabled: true\n"
    text += b"adaptive_no_capacity_low: 0.2\n"

    assert read_settings(read_bytes(text, Format.YAML)) == {
        "clearing_policy": "adaptive",
        "amount_cap": "none",
        "clearing_enabled": "on",
        "adaptive_no_capacity_low": "0.2",
    }


def test_every_fault_of_a_settings_file_is_reported_with_its_place() -> None:
    text = b'{"clearing_polcy": "static",\n "clearing_max_depth": 99,\n "amount_cap": [1],\n'
    text += b' "SIMULATOR_REAL_AMOUNT_CAP": 5}'

    with pytest.raises(DocumentRefused) as refused:
        read_settings(read_bytes(text))

    lines = refused.value.render().split("\n")
    assert [line.split(":")[1] for line in lines] == ["1", "2", "3", "4"]
    assert "did you mean clearing_policy?" in lines[0]
    assert "allowed" not in lines[0]
    assert lines[1].count("from 1 to 64") == 1
    assert "given twice" in lines[3]
