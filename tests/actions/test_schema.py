"""The schema of a file accepts and refuses the same forms as a run."""

import copy
from decimal import Decimal
from typing import Any

import jsonschema_rs
import pytest

from pendula.actions import RunResult, run_document
from pendula.actions.checks import accept, file_schema, town
from pendula.kernel.canonical import encode


@pytest.fixture(scope="module")
def result() -> RunResult:
    return run_document(accept(town()))


def plain(value: Any) -> Any:
    """The value as read by a JSON parser without exact numbers."""
    match value:
        case dict():
            return {name: plain(one) for name, one in value.items()}
        case list():
            return [plain(one) for one in value]
        case Decimal():
            return float(value)
        case _:
            return value


@pytest.fixture(scope="module")
def schema() -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(file_schema())


def test_the_schema_is_valid_and_plain_json() -> None:
    jsonschema_rs.meta.validate(file_schema())

    assert encode(file_schema())
    assert file_schema() == file_schema()


def test_the_town_satisfies_the_schema(schema: jsonschema_rs.Validator) -> None:
    assert [error.message for error in schema.iter_errors(plain(town().value))] == []


def test_a_carry_satisfies_the_schema(schema: jsonschema_rs.Validator, result: RunResult) -> None:
    assert schema.is_valid(plain({**accept(town()), "carry": result.carry}))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("epoch",), None),
        (("interupts",), []),
        (("epochs",), 0),
        (("epoch", "index"), -1),
        (("action_defs", "bake", "effort"), "hihg"),
        (("action_defs", "bake", "base_duration_min"), 0),
        (("action_defs", "bake", "colour"), "red"),
        (("action_defs", "bake", "resources", 0, "amount"), "lots"),
        (("action_defs", "bake", "priority"), 1001),
        (("skills", "ivo", "watch"), 4),
        (("skills", "bruno", "matrix"), 5),
        (("options", "actor_exlusive"), True),
        (("world_state", "modifiers", 0, "factor"), "much"),
        (("actions_submitted", 0, "id"), ""),
        (("actions_submitted", 0, "visibility", "scope"), "everybody"),
        (("interrupts", 0, "at"), 5),
        (("interrupts", 0, "t"), 5),
        (("commands", 0, "cancel"), "letter"),
    ],
)
def test_the_schema_refuses_like_a_run(
    path: tuple[str | int, ...], value: Any, schema: jsonschema_rs.Validator
) -> None:
    given = copy.deepcopy(plain(town().value))
    inner = given
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value

    assert not schema.is_valid(given)


def test_an_instance_has_either_form_of_time_and_keeps_unknown_fields(schema: jsonschema_rs.Validator) -> None:
    given = plain(town().value)
    one = {"id": "X", "actor": "mira", "verb": "deliver"}

    def allows(instance: dict[str, Any]) -> bool:
        return schema.is_valid({**given, "actions_submitted": [instance]})

    assert allows({**one, "t": 5})
    assert allows({**one, "submitted_at": "2025-07-01T08:00:00", "mood": "good"})
    assert not allows(one)
