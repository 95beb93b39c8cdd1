"""`pendula bench` finds benchmarks in the checkout, compares them with their targets, and names what it skipped."""

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

from pendula.cli.benchmarks import Row, Target, Verdict, checkout, compared, load, measured, schedulers_with_benchmarks
from pendula.kernel.errors import MissingExtra
from tests.cli.conftest import Finished, Pendula

AT_MOST = Target("<=", Decimal("1.5"))
AT_LEAST = Target(">=", Decimal(20))

ENGINE_BENCH = """
from decimal import Decimal
from pendula.cli.benchmarks import Progress, Row, Target, compared, measured

PEERS = ()


def run(quick: bool, progress: Progress) -> list[Row]:
    progress("starting")
    return [
        compared("start", 3.0, 2.0, "ms", against="a bicycle", target=Target("<=", Decimal("1.2")), fairness="cold"),
        measured("quickly" if quick else "slowly", 12345.678, "ns"),
    ]
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with the benchmark `engine`, a part of it, and one that needs a missing peer."""
    root = tmp_path / "check out"
    (root / "bench").mkdir(parents=True)
    (root / "pyproject.toml").touch()
    (root / "bench" / "engine.py").write_text(ENGINE_BENCH)
    (root / "bench" / "engine_part.py").write_text("raise AssertionError('a part is no benchmark')")
    monkeypatch.setattr("pendula.__file__", str(root / "src" / "pendula" / "__init__.py"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    loaded = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "bench"}
    for name in loaded:
        del sys.modules[name]
    yield root
    for name in [name for name in sys.modules if name.partition(".")[0] == "bench"]:
        del sys.modules[name]
    sys.modules.update(loaded)


@pytest.mark.parametrize(
    ("ours", "target", "verdict"),
    [
        (15, AT_MOST, Verdict.MET),
        (15.01, AT_MOST, Verdict.MISSED),
        (200, AT_LEAST, Verdict.MET),
        (199, AT_LEAST, Verdict.MISSED),
        (1, None, Verdict.NOT_JUDGED),
    ],
)
def test_a_ratio_is_compared_with_its_target(ours: float, target: Target | None, verdict: Verdict) -> None:
    assert compared("x", ours, 10, "ns", against="y", target=target).verdict is verdict


def test_a_ratio_that_rounds_to_the_target_is_compared_exactly() -> None:
    row = compared("x", Decimal("15.001"), 10, "ns", against="y", target=AT_MOST)

    assert row.ratio == Decimal("1.50")
    assert row.verdict is Verdict.MISSED


def test_a_ratio_that_was_measured_is_not_computed_again() -> None:
    row = compared("x", 10, 10, "ns", against="y", ratio=1.6, target=AT_MOST)

    assert (row.ratio, row.verdict) == (Decimal("1.60"), Verdict.MISSED)


def test_an_unfair_comparison_is_skipped_with_its_reason() -> None:
    row = compared("x", 1, 10, "ns", against="y", target=AT_MOST, unfair="this disk is memory")

    assert (row.verdict, row.sentence) == (Verdict.NOT_JUDGED, "this disk is memory")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(12345.678, "12346"), (1234.5, "1234"), (12.3456, "12.35"), (0.00123456, "0.001235"), (0, "0"), (7, "7.000")],
)
def test_numbers_are_shown_with_four_digits(value: float, shown: str) -> None:
    assert str(measured("x", value, "ns").ours) == shown


def test_parts_of_a_benchmark_are_not_offered(repository: Path) -> None:
    assert schedulers_with_benchmarks(repository) == ["engine"]


def test_a_name_with_a_dash_is_a_module_with_an_underscore(repository: Path, pendula: Pendula) -> None:
    (repository / "bench" / "fleet_map.py").write_text(ENGINE_BENCH)
    (repository / "bench" / "fleet_map_part.py").write_text("raise AssertionError('a part is no benchmark')")

    assert schedulers_with_benchmarks(repository) == ["engine", "fleet-map"]
    assert pendula("bench", "fleet-map", "--quick").code == 0
    assert pendula("bench", "fleet_map").code == 2


def test_results_as_json(repository: Path, pendula: Pendula) -> None:
    ended = pendula("bench", "--quick", "--json")

    report = json.loads(ended.out)
    assert ended.code == 0
    assert ended.err == "bench engine: starting\n"
    assert report["quick"] is True
    assert set(report["machine"]) >= {"cpus", "python", "system", "version"}
    assert [found["scheduler"] for found in report["benches"]] == ["engine"]
    assert report["benches"][0]["rows"] == [
        {
            "against": "a bicycle",
            "fairness": "cold",
            "name": "start",
            "ours": 3,
            "ratio": 1.5,
            "sentence": "1.50 is not <= 1.2",
            "target": "<= 1.2",
            "unit": "ms",
            "verdict": "missed",
            "yardstick": 2,
        },
        {
            "against": "",
            "fairness": "",
            "name": "quickly",
            "ours": 12346,
            "ratio": None,
            "sentence": "",
            "target": None,
            "unit": "ns",
            "verdict": "not judged",
            "yardstick": None,
        },
    ]


def test_results_as_a_table(repository: Path, pendula: Pendula) -> None:
    ended = pendula("bench", "engine")

    assert ended.code == 0
    for text in ("start", "a bicycle", "1.50", "<= 1.2", "missed", "slowly", "12,346", "1.50 is not <= 1.2", "cold"):
        assert text in ended.out


def test_an_unknown_benchmark_is_wrong_usage(repository: Path, pendula: Pendula) -> None:
    assert pendula("bench", "nonsense") == Finished(
        2, "", "pendula: Unknown benchmark 'nonsense'; known are engine (unknown_bench)\n"
    )


def test_a_missing_peer_is_named_with_the_command_that_installs_it(repository: Path) -> None:
    (repository / "bench" / "race.py").write_text("PEERS = ('json', 'no_such_peer')")

    with pytest.raises(MissingExtra, match=r"beside no_such_peer; install with: .* -m pip install -r '.*bench\.lock'"):
        load(repository, "race")


def test_outside_a_checkout_the_error_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pendula: Pendula
) -> None:
    monkeypatch.setattr("pendula.__file__", str(tmp_path / "lib" / "pendula" / "__init__.py"))

    ended = pendula("bench")

    assert ended.code == 3
    assert ended.err == (
        "pendula: Benchmarks come with the repository, not with the package; run this from a checkout (no_benchmarks)\n"
    )


@pytest.mark.parametrize("scheduler", schedulers_with_benchmarks(checkout()))
def test_every_benchmark_of_this_checkout_can_be_loaded(scheduler: str) -> None:
    with suppress(MissingExtra):  # its peers have their own lock file
        assert callable(load(checkout(), scheduler).run)


def test_the_fields_of_a_row_are_a_public_format() -> None:
    assert Row.__struct_fields__ == (
        "name",
        "ours",
        "unit",
        "against",
        "yardstick",
        "ratio",
        "target",
        "verdict",
        "sentence",
        "fairness",
    )
    assert [str(verdict) for verdict in Verdict] == ["met", "missed", "not judged"]
