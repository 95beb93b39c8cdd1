"""The types that the control room is compiled with: what becomes of which shape, and that they are the server's own."""

from typing import Any

import pytest
from msgspec import defstruct
from msgspec.json import schema_components

from pendula.server.app import create_app
from pendula.server.schedulers import schedulers_for
from pendula.server.settings import Settings
from scripts import web_types

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


@pytest.mark.parametrize(
    ("shape", "written"),
    [
        ({}, "Json"),
        ({"description": "anything"}, "Json"),
        (TEXT, "string"),
        (WHOLE, "number"),
        ({"type": "integer", "format": "uint64"}, "number | bigint"),
        ({"type": "number"}, "number | bigint"),
        ({"anyOf": [WHOLE, {"type": "null"}]}, "number | null"),
        ({"anyOf": [WHOLE, WHOLE]}, "number"),
        ({"type": ["string", "null"]}, "string | null"),
        ({"enum": ["a", "b"]}, '"a" | "b"'),
        ({"const": "a", "type": "string"}, '"a"'),
        ({"$ref": "#/components/schemas/Reason"}, "Reason"),
        ({"type": "array", "items": TEXT}, "readonly string[]"),
        ({"type": "array", "items": {"anyOf": [TEXT, WHOLE]}}, "readonly (string | number)[]"),
        ({"type": "array", "prefixItems": [WHOLE, TEXT], "items": False}, "readonly [number, string]"),
        ({"type": "object"}, "JsonObject"),
        ({"type": "object", "additionalProperties": WHOLE}, "Readonly<Record<string, number>>"),
        ({"type": "object", "properties": {"a": TEXT}}, "{ readonly a?: string; }"),
    ],
)
def test_a_shape_is_written_as_its_type(shape: dict[str, Any], written: str) -> None:
    assert web_types.type_of(shape) == written


@pytest.mark.parametrize("shape", [{"not": TEXT}, {"type": "decimal"}])
def test_a_shape_without_a_type_is_a_fault(shape: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no type can be written for"):
        web_types.type_of(shape)


def test_only_what_is_neither_required_nor_has_a_default_may_be_missing() -> None:
    shape = {"properties": {"a": TEXT, "b": TEXT | {"default": ""}, "c": TEXT}, "required": ["a"]}

    assert web_types.members_of(shape) == "  readonly a: string;\n  readonly b: string;\n  readonly c?: string;\n"


def test_shapes_that_are_only_sent_are_not_written() -> None:
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Kept"}}}}
    kept = {"properties": {"part": {"$ref": "#/components/schemas/Part"}}}
    document = {
        "paths": {"/kept/{name}": {"get": {"responses": {"200": answer, "404": {}}}}},
        "components": {"schemas": {"Kept": kept, "Part": TEXT, "Sent": TEXT}},
    }

    text = web_types.types_of(document)

    assert "export interface Kept {\n  readonly part?: Part;\n}" in text
    assert "export type Part = string;" in text
    assert '  readonly "/kept/{name}": Kept;' in text
    assert "Sent" not in text


def test_the_types_of_this_server_have_the_shapes_and_paths_that_schedulers_ask_for() -> None:
    told = Settings(demo=True)

    text = web_types.types_of(create_app(told, schedulers_for(told)).openapi())

    assert '  readonly stage: "waiting" | "running" | "held" | "suspended";' in text
    assert '  readonly "/api/v1/actions/{world}/now": WorldNow;' in text
    assert "  readonly snapshots: readonly (readonly [number, number])[];" in text


def test_two_schedulers_with_views_of_one_name_are_refused() -> None:
    now = {module: defstruct("Now", [(module, int)], module=module) for module in ("near", "far")}
    shapes = schema_components(now.values(), ref_template="#/components/schemas/{name}")[1]
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Now"}}}}
    document = {"paths": {"/now": {"get": {"responses": {"200": answer}}}}, "components": {"schemas": shapes}}

    with pytest.raises(web_types.SameName, match=r"No types for Now: .* there are far.Now, near.Now"):
        web_types.types_of(document)
