"""JSON Schemas of the structs that `typed` reads, made by msgspec from the same annotations."""

from collections.abc import Sequence
from typing import Any

import msgspec

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(form: Any, *, title: str = "", description: str = "") -> dict[str, Any]:
    """The schema of one document, with the structs it uses in `$defs`."""
    (root,), definitions = components([form])
    return {
        "$schema": DRAFT,
        **({"title": title} if title else {}),
        **({"description": description} if description else {}),
        **root,
        **({"$defs": definitions} if definitions else {}),
    }


def components(
    forms: Sequence[Any], ref_template: str = "#/$defs/{name}"
) -> tuple[tuple[dict[str, Any], ...], dict[str, Any]]:
    """The schemas of several types, and by name those of the structs that they use."""
    roots, definitions = msgspec.json.schema_components(forms, schema_hook=lambda _: {}, ref_template=ref_template)
    return tuple(map(_plain, roots)), {name: _plain(definitions[name]) for name in sorted(definitions)}


def _plain(value: Any) -> Any:
    """Plain JSON. What `written` describes replaces the schema of the converted value, and decimals are numbers.

    The default of an object is left out: its members have theirs. The ends of a pattern are those of other languages.
    """
    match value:
        case str() if value.startswith(r"\A") and value.endswith(r"\Z"):
            return f"^{value[2:-2]}$"
        case {"written": schema, **rest}:
            return _plain({name: rest[name] for name in ("description",) if name in rest} | schema)
        case {"$ref": _, "default": {}, **rest}:
            return {"$ref": value["$ref"], **_plain(rest)}
        case {"format": "decimal", **rest}:
            schema = {name: _plain(part) for name, part in rest.items()}
            if isinstance(default := schema.get("default"), str):
                schema["default"] = msgspec.json.decode(default)
            return {**schema, "type": "number"}
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return value
