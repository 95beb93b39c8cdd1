"""Schema and reader agree: a scenario is read if and only if it satisfies the schema."""

import copy
import json
from decimal import Decimal
from random import Random
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pendula.credit.authoring.villages import Profile, village
from pendula.credit.engine import Run
from pendula.credit.reading import ScenarioFile, file_schema, read_scenario
from pendula.credit.runs.headless import plan_run
from pendula.documents import Document, DocumentRefused, Fault, from_value, read_bytes
from pendula.kernel.canonical import encode
from pendula.kernel.errors import InputRefused
from tests.credit.mutations import as_text, mutated, plain
from tests.credit.networks import case, public_scenario

# Faults that a schema cannot express: duplicates, unknown references, excess decimals.
BEYOND = {
    *("not_unique", "unknown_participant", "self_line", "profile_loop", "invalid_amount"),
    *("self_payment", "unknown_equivalent"),
}

SCENARIO = jsonschema_rs.validator_for(file_schema())

SMALL: dict[str, Any] = {
    "schema_version": "scenario/1",
    "scenario_id": "small",
    "equivalents": ["UAH"],
    "participants": [{"id": "ann", "type": "person"}, {"id": "bea", "type": "hub"}],
    "trustlines": [{"from": "ann", "to": "bea", "limit": "5.00", "equivalent": "UAH", "policy": {}}],
    "groups": [{"id": "retail", "label": "Shops"}],
    "behaviorProfiles": [{"id": "calm", "props": {}, "rules": [{"trigger": "payday", "action": "spend"}]}],
    "events": [
        {"time": 0, "type": "inject", "effects": [{"op": "freeze_participant", "participant_id": "ann"}]},
        {"time": 5, "type": "stress", "effects": [{}]},
    ],
    "settings": {"warmup": {}, "trust_drift": {}, "flow": {}},
}


def refers_or_folds(fault: Fault) -> bool:
    """Whether a profile extends an unknown one, or a code has letters outside ASCII: a schema cannot express either."""
    strange = isinstance(fault.value, str) and not fault.value.isascii() and "no code" in fault.message
    return strange or "to extend" in fault.message


def codes_of_faults(document: Document) -> set[str]:
    try:
        read_scenario(document)
    except DocumentRefused as refused:
        return {fault.code for fault in refused.faults if not refers_or_folds(fault)}
    return set()


def with_value(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    given: Any = copy.deepcopy(SMALL)
    inner = given
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return dict(given)


def test_the_schema_is_valid_and_plain_json() -> None:
    jsonschema_rs.meta.validate(file_schema())

    assert json.loads(json.dumps(file_schema())) == file_schema()


@pytest.mark.req("SIM-SCN-1")
def test_the_schema_and_the_reader_have_the_same_members() -> None:
    assert set(file_schema()["properties"]) == {field.encode_name for field in msgspec.structs.fields(ScenarioFile)}


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize(
    "name",
    ["minimal", "clearing-demo-10", "greenfield-village-100-realistic-v2", "riverside-town-50-realistic-v2",
     "trust-drift-decay-minimal"],
)  # fmt: skip
def test_public_scenarios_satisfy_the_schema(name: str) -> None:
    assert [error.message for error in SCENARIO.iter_errors(public_scenario(name))] == []


@pytest.mark.parametrize("profile", list(Profile))
def test_generated_networks_satisfy_the_schema(profile: Profile) -> None:
    made_up = json.loads(encode(village(40, 3, profile=profile)))

    assert [error.message for error in SCENARIO.iter_errors(made_up)] == []


@given(st.integers(0, 10**6))
def test_random_scenarios_satisfy_the_schema(seed: int) -> None:
    assert [error.message for error in SCENARIO.iter_errors(case(seed).scenario)] == []


def agree(scenario: Any) -> None:
    try:
        document = read_bytes(as_text(scenario))
    except DocumentRefused:
        return  # not JSON, or numbers out of range: outside of the schema
    value = json.loads(as_text(scenario))
    faults = codes_of_faults(document)
    valid = SCENARIO.is_valid(value)

    assert valid or faults, "read, although the schema rejects it"
    if not blurred(document.value):
        assert not valid or faults <= BEYOND, f"not read ({faults}), although the schema has no complaint"


def blurred(value: Any) -> bool:
    """Whether the value has a number that a validator confuses with another: `3.0` with `3`, `1e400` with infinity."""
    match value:
        case Decimal():
            return value == value.to_integral_value() or Decimal(repr(float(value))) != value
        case dict():
            return any(map(blurred, value.values()))
        case list():
            return any(map(blurred, value))
        case _:
            return False


@pytest.mark.req("SIM-SCN-1")
def test_schema_and_reader_agree_on_a_thousand_mutations() -> None:
    for seed in range(1000):
        agree(mutated(case(seed).scenario, Random(seed)))


@pytest.mark.long
@given(st.integers(0, 10**9))
def test_schema_and_reader_agree_on_any_mutation(seed: int) -> None:
    agree(mutated(case(seed).scenario, Random(seed)))


WRONG: list[tuple[tuple[str | int, ...], Any]] = [
    (("schema_version",), 1),
    (("scenario_id",), ""),
    (("seed",), -1),
    (("equivalents",), []),
    (("equivalents",), ["UAH", "UAH"]),
    (("baseEquivalent",), "U-H"),
    (("participants",), []),
    (("participants", 0, "type"), "person "),
    (("participants", 0, "id"), "a b"),
    (("participants", 0, "id"), "x" * 201),
    (("participants", 0, "nick"), "an"),
    (("trustlines", 0, "limit"), "five"),
    (("trustlines", 0, "limit"), -1),
    (("trustlines", 0, "limit"), True),
    (("trustlines", 0, "limit"), 10**13),
    (("trustlines", 0, "equivalent"), None),
    (("trustlines", 0, "policy", "auto_clearing"), "perhaps"),
    (("trustlines", 0, "policy", "max_hop_usage"), -1),
    (("trustlines", 0, "policy", "blocked_participants"), ["a b"]),
    (("groups", 0, "label"), None),
    (("behaviorProfiles", 0, "props"), []),
    (("behaviorProfiles", 0, "rules", 0, "trigger"), ""),
    (("events", 0, "effects"), []),
    (("events", 0, "effects", 0, "op"), "freeze"),
    (("events", 0, "effects", 0, "participant_id"), ""),
    (("events", 0, "time"), -1),
    (("events", 0, "time"), "x" * 51),
    (("events", 1, "type"), "storm"),
    (("events", 1, "effects"), [5]),
    (("settings", "warmup", "floor"), 1.5),
    (("settings", "trust_drift", "max_growth"), 0.5),
    (("settings", "flow", "enabled"), "yes"),
    (("settings", "speed"), 5),
]


@pytest.mark.req("SIM-SCN-1")
@pytest.mark.parametrize(("path", "value"), WRONG, ids=[".".join(map(str, path)) for path, _ in WRONG])
def test_schema_and_reader_reject_the_same_values(path: tuple[str | int, ...], value: Any) -> None:
    given = with_value(path, value)

    assert SCENARIO.is_valid(SMALL)
    assert not SCENARIO.is_valid(given)
    with pytest.raises(DocumentRefused):
        read_scenario(read_bytes(as_text(given)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("tick_ms_base", 0), ("clearing_max_depth", 65), ("clearing_policy", "often"), ("enable_inject", 1),
     ("amount_cap", 5), ("amount_cap", -(10**6)), ("adaptive_no_capacity_high", 1.5), ("fixed_seed", -1), ("speed", 1)],
)  # fmt: skip
def test_settings_out_of_range_are_rejected_by_a_run(name: str, value: Any) -> None:
    given = {**plan_run(from_value(SMALL), seed=1).json, "settings": {name: value}}  # type: ignore[dict-item]

    with pytest.raises(InputRefused):
        Run.create(plain(given))
