"""Writes the types of the answers of a server for the control room, web/src/api/types.ts, from its OpenAPI document.

    python scripts/web_types.py

Set-up runs this before it builds the page; the file is never committed and never changed by hand. A shape that cannot
be written as a type is an error.
"""

import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TYPES = ROOT / "web/src/api/types.ts"
HEAD = """\
/** The answers of a server, from its OpenAPI document. Written by scripts/web_types.py; changes here are lost. */

import type { Json, JsonObject } from "./json";
"""
REF = "#/components/schemas/"
PLAIN = {"null": "null", "boolean": "boolean", "string": "string", "integer": "number"}
# JSON's numbers are read exactly: integers that a double cannot hold come as bigint.
ANY_SIZE = "number | bigint"

Shape = Mapping[str, Any]


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class SameName(Exception):
    """Shapes with equal names, or with a name that is invalid in TypeScript."""


def main() -> int:
    from pendula.server.app import create_app
    from pendula.server.schedulers import schedulers_for
    from pendula.server.settings import Settings

    demo_settings = Settings(demo=True)
    try:
        text = types_of(create_app(demo_settings, schedulers_for(demo_settings)).openapi())
    except SameName as error:
        print(error, file=sys.stderr)
        return 1
    TYPES.write_text(text, encoding="utf-8")
    return 0


def types_of(document: Shape) -> str:
    """The whole file: the shapes of answers and their parts, and the shape of each GET and POST by path."""
    shapes, answers = document["components"]["schemas"], dict(sorted(answers_of(document)))
    names = sorted(reached(shapes, answers.values()))
    require_names(shapes, names)
    tables = (table_of("Answers", "get", answers), table_of("PostAnswers", "post", answers))
    return "\n".join([HEAD, *(declared(name, shapes[name]) for name in names), *tables])


def table_of(name: str, method: str, answers: Mapping[tuple[str, str], Shape]) -> str:
    """The answers of a method, by path."""
    types = {path: type_of(shape) for (path, used), shape in answers.items() if used == method}
    members = "".join(f"  readonly {json.dumps(path)}: {written};\n" for path, written in types.items())
    words = f"/** The answers of {method.upper()}, by path. */"
    return f"{words}\nexport interface {name} {{\n{members}}}\n"


def answers_of(document: Shape) -> Iterator[tuple[tuple[str, str], Shape]]:
    """Path, method and shape of the first successful JSON answer of each route."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, response in sorted(operation["responses"].items(), reverse=True):
                shape = response.get("content", {}).get("application/json", {}).get("schema")
                if status.startswith("2") and shape is not None:
                    yield (path, method), shape


def reached(shapes: Shape, roots: Any) -> set[str]:
    """The names of all shapes reachable from these."""
    found: set[str] = set()
    waiting = [name for root in roots for name in references(root)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += references(shapes.get(name))
    return found


def require_names(shapes: Shape, names: Sequence[str]) -> None:
    """Reject equal view names in two schedulers: OpenAPI would name them after their modules, and references break."""
    wrong = [name for name in names if name not in shapes or not _NAME.fullmatch(name)]
    if wrong:
        missing = ", ".join(wrong)
        alike = sorted(name for name in shapes if not _NAME.fullmatch(name))
        raise SameName(
            f"No types for {missing}: give each view of a scheduler a name of its own; there are {', '.join(alike)}"
        )


def references(part: Any) -> list[str]:
    match part:
        case {"$ref": str(ref)}:
            return [ref.removeprefix(REF)]
        case dict():
            return [name for value in part.values() for name in references(value)]
        case list():
            return [name for value in part for name in references(value)]
        case _:
            return []


def declared(name: str, shape: Shape) -> str:
    """One shape under its name."""
    words = remark(shape)
    if "properties" in shape:
        return f"{words}export interface {name} {{\n{members_of(shape)}}}\n"
    return f"{words}export type {name} = {type_of(shape)};\n"


def remark(shape: Shape) -> str:
    text = " ".join(shape.get("description", "").split())
    return "\n * ".join(textwrap.wrap(f"/** {text} */", 117)) + "\n" if text else ""


def members_of(shape: Shape) -> str:
    """A member with a default is always written in an answer; only one that is neither may be missing."""
    required = set(shape.get("required", ()))
    return "".join(
        f"  readonly {name}{'' if name in required or 'default' in part else '?'}: {type_of(part)};\n"
        for name, part in shape["properties"].items()
    )


def type_of(shape: Any) -> str:
    """The type of a shape, in one line."""
    match shape:
        case {"$ref": str(ref)}:
            return ref.removeprefix(REF)
        case {"anyOf": list(parts)} | {"oneOf": list(parts)}:
            return " | ".join(dict.fromkeys(type_of(part) for part in parts))
        case {"const": value}:
            return json.dumps(value)
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value) for value in values)
        case {"type": list(kinds)}:
            return " | ".join(type_of({**shape, "type": kind}) for kind in kinds)
        case {"type": "number"} | {"type": "integer", "format": "int64" | "uint64"}:
            return ANY_SIZE
        case {"type": "array"}:
            return list_of(shape)
        case {"type": "object"}:
            return object_of(shape)
        case {"type": str(kind)} if kind in PLAIN:
            return PLAIN[kind]
        case _ if not set(shape) - {"title", "description", "default"}:
            return "Json"
        case _:
            raise ValueError(f"no type can be written for {shape}")


def list_of(shape: Shape) -> str:
    if "prefixItems" in shape:
        return f"readonly [{', '.join(type_of(part) for part in shape['prefixItems'])}]"
    items = type_of(shape.get("items", {}))
    return f"readonly ({items})[]" if " " in items else f"readonly {items}[]"


def object_of(shape: Shape) -> str:
    if "properties" in shape:
        return "{ " + " ".join(members_of(shape).split()) + " }"
    values = shape.get("additionalProperties")
    return f"Readonly<Record<string, {type_of(values)}>>" if isinstance(values, dict) and values else "JsonObject"


if __name__ == "__main__":
    sys.exit(main())
