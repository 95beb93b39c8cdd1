"""`pendula credit run`, `check` and `new`: files, output, options, settings, exit codes."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pendula.credit.ledger.cycles import Edge
from pendula.credit.outside.answers import AmountsTooLarge
from pendula.credit.runs.headless import simulate
from pendula.credit.settings import BY_VARIABLE, Settings, change_settings
from pendula.documents import read_file
from pendula.kernel.canonical import decode, encode
from tests.cli.commands.credit.villages import OFTEN, RING, error, read_json, write_file
from tests.cli.conftest import Finished, Pendula

PUBLIC = Path(__file__).resolve().parents[5] / "shared" / "data" / "credit"
PLAN = "e3425d327d703ceacca4d0d6364b43c8ed5123c7a2b1c43ec71294ec6a858ad6"
LEDGER = "117473ef0fc1fae78a845c5380e348f3bd5e8f8e059564e0ae286e4baac3c451"


@pytest.fixture(autouse=True)
def clear_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BY_VARIABLE:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "140")


@pytest.fixture
def ring(tmp_path: Path) -> Path:
    return write_file(tmp_path / "ring.json")


@pytest.fixture
def public() -> Callable[[str], Path]:
    def find(name: str) -> Path:
        path = PUBLIC / name
        if not path.exists():
            pytest.skip(f"the public file {name} is not installed")
        return path

    return find


class CircleSolver:
    """Clears one circle of all debts by the smallest of them."""

    name = "circle 1"

    def solve(self, edges: list[Edge]) -> tuple[int, ...]:
        return (min(amount for _, _, amount in edges),) * len(edges) if len(edges) == 3 else (0,) * len(edges)


def test_a_run_can_vary_the_scenario_like_a_sweep(ring: Path, pendula: Pendula) -> None:
    run = ("credit", "run", ring, "--ticks", "6", "--seed", "1", "--cap", "30", "--json")
    change = "trustlines[*].limit*0.1"

    plain, tight = (
        read_json(pendula(*run)),
        read_json(pendula(*run, "--set", change, "--set", "actions_per_tick_max=20")),
    )

    swept = ("credit", "sweep", ring, "--ticks", "6", "--seeds", "1", "--cap", "30", "--set", change, "--json")
    values = read_json(pendula(*swept))["columns"]["values"]
    assert tight["digests"] == {"plan": values["plan_digest"][0], "ledger": values["ledger_digest"][0]}
    assert tight["digests"] != plain["digests"]
    assert tight["totals"]["UNIT"]["wanted"] == plain["totals"]["UNIT"]["wanted"]
    assert "The scenario has nothing at" in pendula(*run, "--set", "trustlines[from=zoe].limit=5").err


@pytest.mark.req("SIM-GUARD-2")
def test_a_run_reports_payments_delayed_by_the_rate_limit(ring: Path, pendula: Pendula, tmp_path: Path) -> None:
    slow = ("--ticks", "3", "--set", "max_payments_per_sec=3", "--set", "actions_per_tick_max=5")
    run = ("credit", "run", ring, "--seed", "1", *slow, "--csv", tmp_path / "run.csv")

    assert read_json(pendula(*run, "--json"))["queue_depth"] == 6
    assert "0 dropped, 6 waiting" in pendula(*run).out
    header, *_, last = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()
    assert dict(zip(header.split(","), last.split(","), strict=True))["queue_depth"] == "6"


def test_a_fault_of_the_file_keeps_its_place_when_the_scenario_is_changed(tmp_path: Path, pendula: Pendula) -> None:
    file = write_file(tmp_path / "bad.json", {**RING, "seed": -1})

    ended = pendula("credit", "run", file, "--ticks", "1", "--set", "trustlines[*].limit*2")

    assert ended.code == 1
    assert "bad.json:1:" in ended.err


def test_a_scenario_is_generated_with_hubs_degree_and_limit(tmp_path: Path, pendula: Pendula) -> None:
    shape = ("--hubs", "5", "--degree", "3", "--limit", "70")

    made = read_json(pendula("credit", "new", "--participants", "40", *shape, "--json"))

    assert made["scenario_id"] == "village-40-0-hubs-5-degree-3-limit-70"
    assert {line["limit"] for line in made["trustlines"]} == {"70.00"}
    assert sum(one["type"] == "hub" for one in made["participants"]) == 5


@pytest.mark.req("SIM-API-20")
def test_json_is_one_canonical_document_in_the_fixed_form(ring: Path, pendula: Pendula) -> None:
    ended = pendula("credit", "run", ring, "--ticks", "12", *OFTEN, "--json")

    output = read_json(ended)
    totals, refusals = output.pop("totals"), output.pop("refusals")
    assert (totals["UNIT"]["committed"], totals["UNIT"]["cleared_amount"]) == (90, "39.97000000")
    assert (refusals["reasons"], sum(refusals["participants"].values())) == ({"ROUTING_NO_CAPACITY": 150}, 150)
    assert output == {
        "queue_depth": 0,
        "clearing": [
            {
                "cleared_amount": "20.00",
                "cleared_cycles": 1,
                "debt_reduction": "60.00",
                "equivalent": "UNIT",
                "reason": "STATIC_CADENCE",
                "tick": 4,
            },
            {
                "cleared_amount": "19.97",
                "cleared_cycles": 1,
                "debt_reduction": "59.91",
                "equivalent": "UNIT",
                "reason": "STATIC_CADENCE",
                "tick": 8,
            },
        ],
        "counters": {
            "attempts_total": 240,
            "committed_total": 90,
            "dropped_total": 0,
            "errors_total": 0,
            "rejected_total": 150,
            "timeouts_total": 0,
        },
        "diagnostics": [
            {"code": "seed_not_given", "facts": {"seed": 0}, "message": "No seed was given; the run uses 0."}
        ],
        "digests": {"ledger": LEDGER, "plan": PLAN},
        "metrics": {
            "UNIT": {
                "active_participants": "3.00000000",
                "active_trustlines": "3.00000000",
                "avg_route_length": "1.33333333",
                "bottlenecks_score": "0.00000000",
                "clearing_cost_ms": None,
                "clearing_volume": "0.00000000",
                "no_capacity_rate": "0.62500000",
                "served": "0.27000000",
                "served_share": "0.76206605",
                "success_rate": "15.00000000",
                "total_debt": "59.79000000",
                "volume": "0.91000000",
                "wanted": "35.43000000",
            }
        },
    }
    assert ended.out.encode() == encode(decode(ended.out.encode())) + b"\n"


def test_the_text_output_has_counts_clearing_and_warnings(ring: Path, pendula: Pendula) -> None:
    ended = pendula("credit", "run", ring, "--ticks", "12", *OFTEN)

    lines = [" ".join(line.split()) for line in ended.out.splitlines()]
    assert (ended.code, ended.err) == (0, "")
    assert "payments 240 tried, 90 made (37.5 %), 150 rejected, 0 failed, 0 dropped" in lines
    assert f"ledger {LEDGER}" in lines
    assert "4 UNIT STATIC_CADENCE 1 20.00 60.00" in lines
    assert "warning: No seed was given; the run uses 0. (seed_not_given)" in lines


def test_a_run_may_have_no_ticks(ring: Path, pendula: Pendula) -> None:
    output = read_json(pendula("credit", "run", ring, "--ticks", "0", "--json"))

    assert (output["counters"]["attempts_total"], output["metrics"], output["clearing"]) == (0, {}, [])
    assert pendula("credit", "run", ring, "--ticks", "0").code == 0


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (("--seed", "7"), {"seed": 7}),
        (("--intensity", "25"), {"intensity": 25}),
        (("--policy", "adaptive"), {"settings": {"clearing_policy": "adaptive"}}),
        (("--policy", "ADAPTIVE"), {"settings": {"clearing_policy": "adaptive"}}),
        (("--cap", "1.509"), {"settings": {"amount_cap": "1.50"}}),
        (("--cap", "none"), {"settings": {"amount_cap": "none"}}),
        (("--set", "SIMULATOR_ACTIONS_PER_TICK_MAX=3"), {"settings": {"actions_per_tick_max": "3"}}),
        (
            ("--set", "actions_per_tick_max=30", "--set", "actions_per_tick_min=25"),
            {"settings": {"actions_per_tick_max": "30", "actions_per_tick_min": "25"}},
        ),
    ],
)
def test_options_are_those_of_the_library(
    arguments: tuple[str, ...], options: dict[str, Any], ring: Path, pendula: Pendula
) -> None:
    plain = simulate(read_file(ring), ticks=10)
    settings = change_settings(Settings(), options.get("settings", {}))
    expected = simulate(read_file(ring), ticks=10, **{**options, "settings": settings})

    output = read_json(pendula("credit", "run", ring, "--ticks", "10", *arguments, "--json"))

    assert output["digests"] == expected.digests
    if arguments[0] != "--policy":
        assert output["digests"] != plain.digests


def test_a_settings_file_equals_its_settings(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    file = tmp_path / "few.yaml"
    file.write_text("actions_per_tick_max: 3\namount_cap: 2\n")
    run = ("credit", "run", ring, "--ticks", "5", "--json")

    output = read_json(pendula(*run, "--set", file))

    assert output == read_json(pendula(*run, "--set", "actions_per_tick_max=3", "--cap", "2"))
    assert pendula(*run, "--set", file, "--cap", "5").code == 2


def test_options_override_the_environment(ring: Path, pendula: Pendula, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ("credit", "run", ring, "--ticks", "5", "--json")
    plain = read_json(pendula(*run))
    monkeypatch.setenv("SIMULATOR_ACTIONS_PER_TICK_MAX", "2")

    fewer = read_json(pendula(*run))

    assert fewer["counters"]["attempts_total"] == 10
    assert read_json(pendula(*run, "--set", "actions_per_tick_max=20")) == plain


@pytest.mark.req("SIM-GUARD-1")
def test_an_invalid_variable_is_refused_input(ring: Path, pendula: Pendula, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATOR_CLEARING_POLICY", "adaptiv")

    for command in (("run", ring, "--ticks", "1"), ("check", ring)):
        output = error(pendula("credit", *command, "--json"))
        assert output["code"] == "invalid_setting"
        assert output["details"] == {
            "allowed": "static or adaptive",
            "value": "adaptiv",
            "variable": "SIMULATOR_CLEARING_POLICY",
        }


@pytest.mark.req("SIM-DET-3")
@pytest.mark.parametrize(
    ("arguments", "in_the_file", "variable", "used"),
    [(("--seed", "5"), 6, "7", 5), ((), 6, "7", 6), ((), None, "7", 7), ((), None, "", 0)],
)
def test_the_seed_comes_from_option_then_scenario(
    arguments: tuple[str, ...],
    in_the_file: int | None,
    variable: str,
    used: int,
    tmp_path: Path,
    pendula: Pendula,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write_file(tmp_path / "seeded.json", RING if in_the_file is None else {**RING, "seed": in_the_file})
    monkeypatch.setenv("SIMULATOR_FIXED_SEED", variable)

    output = read_json(pendula("credit", "run", path, "--ticks", "3", *arguments, "--json"))

    assert output["digests"] == simulate(read_file(path), ticks=3, seed=used).digests
    assert [one["code"] for one in output["diagnostics"]] == ([] if used else ["seed_not_given"])


@pytest.mark.parametrize(
    ("arguments", "about"),
    [
        ((), "Missing option '--ticks'"),
        (("--ticks", "-1"), "'--ticks'"),
        (("--ticks", "1", "--seed", "-1"), "'--seed'"),
        (("--ticks", "1", "--intensity", "101"), "'--intensity'"),
        (("--ticks", "1", "--intensity", "1.5"), "'--intensity'"),
        (("--ticks", "1", "--policy", "hasty"), "'hasty' is not one of 'static', 'adaptive'"),
        (("--ticks", "1", "--cap", "lots"), "SIMULATOR_REAL_AMOUNT_CAP is 'lots'; allowed is an amount, or none"),
        (("--ticks", "1", "--cap", "-1"), "SIMULATOR_REAL_AMOUNT_CAP is '-1'"),
        (("--ticks", "1", "--set", "amount_cap"), "is not of the form NAME=VALUE"),
        (("--ticks", "1", "--set", "amount_capp=1"), "No setting is called 'amount_capp' (did you mean amount_cap?)"),
        (
            ("--ticks", "1", "--set", "routing_max_hops=0"),
            "ROUTING_MAX_HOPS is '0'; allowed is an integer from 1 to 64",
        ),
        (("--ticks", "1", "--set", "actions_per_tick_min=30"), "the first must not be higher"),
        (("--ticks", "1", "--cap", "1", "--set", "amount_cap=2"), "The setting amount_cap is given twice"),
        (("--ticks", "1", "--resume"), "--resume needs the journal of the run"),
    ],
)
def test_invalid_options_are_wrong_usage(arguments: tuple[str, ...], about: str, ring: Path, pendula: Pendula) -> None:
    ended = pendula("credit", "run", ring, *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert about in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.req("SIM-SCN-4")
@pytest.mark.parametrize("command", [("run", "--ticks", "1"), ("check",)])
def test_every_fault_of_a_file_is_listed_with_its_place(
    command: tuple[str, ...], tmp_path: Path, pendula: Pendula
) -> None:
    lines = [{"from": "ann", "to": "ann", "limit": 1}, {"from": "ann", "to": "bob", "limit": -1}]
    path = write_file(tmp_path / "bad.json", json.dumps({**RING, "trustlines": lines, "seeed": 1}, indent=1))

    ended = pendula("credit", command[0], path, *command[1:])
    output = error(pendula("credit", command[0], path, *command[1:], "--json"))

    assert (ended.code, ended.out) == (1, "")
    assert len(ended.err.splitlines()) == len(output["details"]["faults"]) >= 4
    assert all(line.startswith(f"{path}:") for line in ended.err.splitlines())
    assert output["code"] == "document_refused"
    assert {"$.trustlines[1].limit", "$.trustlines[1].to"} <= {fault["path"] for fault in output["details"]["faults"]}


def test_a_missing_file_is_refused(tmp_path: Path, pendula: Pendula) -> None:
    ended = pendula("credit", "run", tmp_path / "nobody.json", "--ticks", "1")

    assert (ended.code, ended.out) == (3, "")


def test_lenient_reading_accepts_minor_faults(tmp_path: Path, pendula: Pendula) -> None:
    path = write_file(tmp_path / "more.json", {**RING, "colour": "green"})

    assert pendula("credit", "run", path, "--ticks", "2").code == 1
    output = read_json(pendula("credit", "run", path, "--ticks", "2", "--seed", "1", "--lenient", "--json"))
    checked = read_json(pendula("credit", "check", path, "--lenient", "--json"))

    assert [one["code"] for one in output["diagnostics"]] == ["unknown_member"]
    assert "unknown_member" in [one["code"] for one in checked["warnings"]]


def test_every_clearing_has_its_yardstick(
    ring: Path, tmp_path: Path, pendula: Pendula, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pendula.credit.outside.answers.OrTools", CircleSolver)
    journal = tmp_path / "journal"
    run = ("credit", "run", ring, "--ticks", "9", *OFTEN, "--yardstick")

    output = read_json(pendula(*run, "--journal", journal, "--json"))

    assert [(row["debt_reduction"], row["optimum"]) for row in output["clearing"]] == [
        ("60.00", "60.00"),
        ("59.91", "59.91"),
    ]
    assert "optimum" in pendula(*run).out
    # A replay needs no solver.
    monkeypatch.setitem(sys.modules, "ortools", None)
    assert read_json(pendula("replay", journal, "--json"))["verified"] is True


@pytest.mark.parametrize("options", [("--yardstick",), ("--set", "clearing_mode=optimal")])
def test_a_missing_extra_is_named_before_anything_is_created(
    options: tuple[str, ...], ring: Path, tmp_path: Path, pendula: Pendula, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ortools", None)
    places = ("--journal", tmp_path / "journal", "--out", tmp_path / "out")

    ended = pendula("credit", "run", ring, "--ticks", "5", *options, *places)

    assert (ended.code, ended.out) == (3, "")
    assert ended.err == (
        'pendula: Optimal clearing needs ortools; install with: pip install "pendula[optimal]" (missing_extra)\n'
    )
    assert [path.name for path in tmp_path.iterdir()] == ["ring.json"]


def test_a_failing_solver_leaves_a_gap_and_the_run_continues(
    ring: Path, pendula: Pendula, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Overwhelmed(CircleSolver):
        def solve(self, edges: list[Edge]) -> tuple[int, ...]:
            raise AmountsTooLarge("too large", unit=1, value=1, allowed=0)

    monkeypatch.setattr("pendula.credit.outside.answers.OrTools", Overwhelmed)

    output = read_json(pendula("credit", "run", ring, "--ticks", "9", *OFTEN, "--yardstick", "--json"))

    assert [sorted(row) for row in output["clearing"]] == [
        ["cleared_amount", "cleared_cycles", "debt_reduction", "equivalent", "reason", "tick"]
    ] * 2


def test_a_guardrail_that_ends_the_run_is_exit_3_after_the_result(ring: Path, pendula: Pendula) -> None:
    # One examined edge per payment: routes of two hops exceed the work limit, which is a timeout.
    tight = ("--set", "work_units_per_ms=1", "--set", "routing_timeout_ms=1")

    ended = pendula("credit", "run", ring, "--ticks", "12", *tight, "--json")

    assert ended.code == 3
    assert json.loads(ended.out)["counters"]["timeouts_total"] >= 5
    output = json.loads(ended.err)["error"]
    assert (output["code"], output["details"]["last_error"]["code"]) == ("run_failed", "PAYMENT_TIMEOUT")


def test_check_lists_warnings_with_exit_code_0(tmp_path: Path, pendula: Pendula) -> None:
    lonely = {**RING, "participants": [*RING["participants"], {"id": "dora", "type": "person"}]}
    path = write_file(tmp_path / "lonely.json", lonely)

    output = read_json(pendula("credit", "check", path, "--json"))
    ended = pendula("credit", "check", path)

    assert {
        name: output[name] for name in ("file", "sound", "participants", "trustlines", "equivalents", "events")
    } == {
        "file": str(path),
        "sound": True,
        "participants": 4,
        "trustlines": 3,
        "equivalents": ["UNIT"],
        "events": 1,
    }
    assert any("dora" in one["message"] for one in output["warnings"])
    assert (ended.code, ended.err) == (0, "")
    assert "lonely.json is sound: 4 participants, 3 lines, in UNIT." in " ".join(ended.out.split())
    assert "warning: " in ended.out


def test_check_names_profiles_silenced_by_the_cap(tmp_path: Path, pendula: Pendula) -> None:
    people = [{**one, "behaviorProfileId": "rich"} for one in RING["participants"]]
    profile = {"id": "rich", "props": {"amount_model": {"UNIT": {"min": 9, "max": 15, "p50": 10}}}}
    path = write_file(tmp_path / "rich.json", {**RING, "participants": people, "behaviorProfiles": [profile]})

    under_the_default = read_json(pendula("credit", "check", path, "--json"))["warnings"]
    under_more = read_json(pendula("credit", "check", path, "--cap", "500", "--json"))["warnings"]
    run = read_json(pendula("credit", "run", path, "--ticks", "2", "--seed", "1", "--json"))

    assert any("rich" in one["message"] for one in under_the_default)
    assert not any("rich" in one["message"] for one in under_more)
    assert run["diagnostics"][0]["code"] == "profile_silenced"


@pytest.mark.parametrize("profile", ["village", "town", "ring", "market"])
def test_new_generates_a_valid_scenario_that_can_be_run(profile: str, tmp_path: Path, pendula: Pendula) -> None:
    path = tmp_path / "new.json"
    arguments = ("credit", "new", "--participants", "20", "--profile", profile, "--seed", "7")

    output = read_json(pendula(*arguments, "-o", path, "--json"))
    printed = pendula(*arguments)

    assert output["participants"] == 20
    assert printed.out == path.read_text(encoding="utf-8")
    assert encode(decode(printed.out.encode())) + b"\n" == pendula(*arguments, "--json").out.encode()
    assert read_json(pendula("credit", "check", path, "--json"))["trustlines"] == output["trustlines"]
    assert read_json(pendula("credit", "run", path, "--ticks", "5", "--json"))["counters"]["attempts_total"] > 0


def test_new_does_not_overwrite_a_file(tmp_path: Path, pendula: Pendula) -> None:
    path = write_file(tmp_path / "mine.json", "my own work")

    output = error(pendula("credit", "new", "--participants", "5", "-o", path, "--json"))

    assert output["code"] == "file_exists"
    assert path.read_text(encoding="utf-8") == "my own work"
    assert pendula("credit", "new", "--participants", "5", "-o", tmp_path / "no" / "x.json").code == 3


@pytest.mark.parametrize(
    "arguments",
    [(), ("--participants", "1"), ("--participants", "100001"), ("--participants", "5", "--profile", "city")],
)
def test_new_with_invalid_options_is_wrong_usage(arguments: tuple[str, ...], pendula: Pendula) -> None:
    assert pendula("credit", "new", *arguments).code == 2


def test_names_cannot_inject_terminal_sequences(tmp_path: Path, pendula: Pendula) -> None:
    path = write_file(tmp_path / "hostile.json", {**RING, "scenario_id": "\u001b[2J[red]"})

    ended = pendula("credit", "run", path, "--ticks", "1")

    assert ended.code == 0
    assert "\x1b" not in ended.out
    assert "[red]" in ended.out


@pytest.mark.req("SIM-TEST-5")
def test_the_smallest_public_scenario_has_its_hundred_attempts(public: Callable[[str], Path], pendula: Pendula) -> None:
    path = public("minimal/scenario.json")

    output = read_json(pendula("credit", "run", path, "--seed", "42", "--ticks", "5", "--json"))

    assert output["counters"]["attempts_total"] == 100


@pytest.mark.req("SIM-TEST-1")
@pytest.mark.parametrize("name", ["missing_scenario_id.json", "missing_equivalent_fields.json"])
def test_public_negatives_are_refused(name: str, public: Callable[[str], Path], pendula: Pendula) -> None:
    ended = pendula("credit", "check", public(f"negative/{name}"))

    assert (ended.code, ended.out) == (1, "")
    assert ": $" in ended.err


def test_a_run_imports_no_unneeded_library(ring: Path, python: Callable[..., Finished]) -> None:
    code = "import sys\nfrom pendula.cli import main\ntry:\n main()\nfinally:\n print(*sys.modules, file=sys.stderr)"

    ended = python(code, "credit", "run", str(ring), "--ticks", "1", "--json")

    assert ended.code == 0
    unneeded = {"fastapi", "numpy", "ortools", "rich", "pendula.credit.runs.artifacts", "pendula.kernel.driver"}
    assert not unneeded & set(ended.err.split())


def test_a_run_writes_a_chart_and_its_series(ring: Path, tmp_path: Path, pendula: Pendula) -> None:
    chart, table = tmp_path / "run.svg", tmp_path / "run.csv"

    pendula("credit", "run", ring, "--ticks", "12", *OFTEN, "--chart", chart, "--csv", table)

    rows = table.read_text(encoding="utf-8").splitlines()
    assert (len(rows), rows[0].split(",")[:4]) == (13, ["tick", "sim_time_ms", "equivalent", "committed"])
    assert chart.read_text(encoding="utf-8").startswith("<svg")


def test_a_bundle_is_repeated_to_the_same_digests_and_takes_no_other_options(
    ring: Path, tmp_path: Path, pendula: Pendula
) -> None:
    first = read_json(pendula("credit", "run", ring, "--ticks", "12", *OFTEN, "--out", tmp_path / "out", "--json"))
    bundle = tmp_path / "out" / "bundle.zip"

    again = read_json(pendula("credit", "run", bundle, "--json"))

    assert again["digests"] == first["digests"]
    assert pendula("credit", "run", bundle, "--ticks", "3").code == 2
    assert pendula("credit", "run", ring).code == 2
