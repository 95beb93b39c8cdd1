"""The pages of the fleet have every finding with its severity, every incident and every parameter."""

import re
import tomllib
from decimal import Decimal

import pytest

from pendula.documents import DocumentRefused, Format, read_bytes
from pendula.fleet import Code, CompileParams, read_params
from pendula.fleet.events import INCIDENT_ALERTS, INCIDENT_STOPS, TICK_FAILED
from pendula.fleet.map.site_file import params_form
from pendula.fleet.model import severity_of
from pendula.fleet.scenarios.reading import TRAFFIC_PARAMS, read_traffic_params
from pendula.fleet.tick.params import RANGES as TRAFFIC_RANGES
from pendula.fleet.tick.params import TrafficParams, contract_name, contract_value
from pendula.kernel.limits import JOURNAL_BYTES
from pendula.server.runtime.scheduler_spec import SHARES
from tests.docs.markdown import ROOT

PAGE = (ROOT / "docs/reference/fleet-maps.md").read_text(encoding="utf-8")
FINDING = re.compile(r"^\| `([A-Z_]+)` \| (ERROR|WARN|INFO) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
PARAMETER = re.compile(r"^\| `(\w+)` \| (?:m|rad|) ?\| ([0-9.]+) \| ([0-9.]+) to ([0-9.]+) \|", re.MULTILINE)
RANGES = [(name, default, least, most) for name, default, least, most in PARAMETER.findall(PAGE)]
# Two parameters of a file that the compiler adds up.
SUMMED = {"offRouteExtraOnBendM", "turningExtraMarginM"}


@pytest.mark.req("FLT-OBS-11")
def test_the_page_lists_exactly_the_incidents() -> None:
    page = (ROOT / "docs/reference/fleet-scenarios.md").read_text(encoding="utf-8")
    table = page.partition("## Incidents\n")[2].partition("\n\nA truck that is silent")[0]

    assert set(re.findall(r"`([A-Z_]{8,})`", table)) == {*INCIDENT_STOPS, *INCIDENT_ALERTS, TICK_FAILED}


@pytest.mark.req("FLT-MAP-15")
def test_every_finding_has_its_row_with_its_severity() -> None:
    told = {code: severity for code, severity, _, _ in FINDING.findall(PAGE)}

    assert told == {code.value: severity_of(code).value for code in Code}


def test_every_finding_has_its_condition_and_remedy() -> None:
    assert [code for code, _, when, remedy in FINDING.findall(PAGE) if not (when.strip() and remedy.strip())] == []


def test_every_numeric_parameter_has_its_default() -> None:
    known = {name: value for name, value in params_form(CompileParams()).items() if not isinstance(value, str)}
    known.pop("geomEps")  # fixed
    known.pop("bendExtraM")  # the sum of two parameters
    told = {name: Decimal(default) for name, default, _, _ in RANGES}

    assert told == known | dict.fromkeys(SUMMED, 0)


@pytest.mark.parametrize(("name", "least", "most"), [(name, least, most) for name, _, least, most in RANGES])
def test_the_range_of_a_parameter_is_the_accepted_one(name: str, least: str, most: str) -> None:
    def read(value: Decimal) -> CompileParams:
        return read_params(read_bytes(f'{{"{name}": {value:f}}}'.encode(), Format.JSON, "params"))

    step = 1 if name == "maxRectsPerCell" else Decimal("0.0001")
    read(Decimal(least))
    read(Decimal(most))
    for outside in (Decimal(least) - step, Decimal(most) + step):
        with pytest.raises(DocumentRefused):
            read(outside)


TRAFFIC = (ROOT / "docs/reference/fleet-parameters.md").read_text(encoding="utf-8")
TRAFFIC_ROW = re.compile(r"^\| `(\w+)` \| (\S+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def test_every_parameter_of_traffic_has_its_default_and_range() -> None:
    usual = TrafficParams()
    told = {name: (default, span) for name, default, span, _ in TRAFFIC_ROW.findall(TRAFFIC)}
    by_truck = {name for name, field in TRAFFIC_PARAMS.items() if getattr(usual, field) is None}

    assert list(told) == list(TRAFFIC_PARAMS)
    assert {name for name, (default, _) in told.items() if default == "inflation"} == by_truck
    assert {name: read_traffic_param(name, told[name][0]) for name in told.keys() - by_truck} == {
        name: getattr(usual, field) for name, field in TRAFFIC_PARAMS.items() if name not in by_truck
    }
    assert {name: told[contract_name(name)][1] for name in TRAFFIC_RANGES} == {
        name: f"{contract_value(name, low)} to {contract_value(name, high)}"
        for name, (low, high) in TRAFFIC_RANGES.items()
    }


def read_traffic_param(name: str, value: str) -> object:
    document = read_bytes(f"{name}: {value}".encode(), Format.YAML, "params")
    return getattr(read_traffic_params(document, TrafficParams()), TRAFFIC_PARAMS[name])


def test_the_page_about_serving_says_how_far_back_a_fleet_goes() -> None:
    page = (ROOT / "docs/how-to/serve-a-fleet.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    limits = tomllib.loads(text)["limits"]

    assert f"By default that is {JOURNAL_BYTES.default // SHARES // 2**20} MiB" in page
    assert f"keep {limits['journal_bytes'] // limits['engines'] // 2 // 2**30} GiB each" in page
