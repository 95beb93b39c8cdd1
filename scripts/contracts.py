"""Writes docs/reference/fleet-contracts.md and a JSON Schema of each contract, from the models.

    python scripts/contracts.py            write the files
    python scripts/contracts.py --check    change nothing; fail when a file is not what would be written

docs/reference/contracts.toml explains each member. A member without a line and a line without a member are faults.
"""

import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import Any, get_args

from msgspec import inspect

from pendula.fleet.contracts import CONTRACTS, schema_of
from pendula.fleet.events import FleetEvent

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs/reference"
# Payloads that tests read, check and write, so that the page shows tested examples.
GOLDEN = ROOT / "tests/fleet/golden"
PRINTED = ROOT / "examples/specifications"
# Longer ones are files of their own, such as compiled maps.
MOST_LINES = 22
EVERYWHERE = "everywhere"
# A suffix of model names that the page omits.
ENDINGS = ("Contract", "Form")
INTRO = """# Contracts of a fleet

The payloads of the scheduler `fleet`: maps, trucks and routes, and the messages of a running fleet with trucks, tasks
and operators. The [events](#events) of a fleet are at the end.

Written by `scripts/contracts.py` from the models and `docs/reference/contracts.toml`; change those, not this page.

## How they are read

Payloads are canonical JSON: sorted members, UTF-8, no NaN. Names end with units: `…M` metres, `…Rad` radians, `…Ms`
milliseconds, `…Ts` a time in milliseconds, `…S` a position on the route in metres (but seconds in `controlLatencyS`).
Lengths and angles have at most six decimals, and numbers are exact: `0.1` is a tenth, never a float. The angle
`3.141593` means π.

Unknown members are ignored. A missing required member is an error, and so is another major version of
`contractVersion`. Members marked *optional* may be left out; null is allowed only where the type has it.

```python
from pendula.fleet.contracts import CONTRACTS, ContractRefused, parse, schema_of, serialise

data = b'{"nodeId": "LM2", "inEdgeKey": "LM1->LM2", "outEdgeKey": "LM2->AP1", "transitionGeomKind": "NON_TANGENT", '
whole = data + b'"turnRad": 3.141593, "colour": "red"}'
print(serialise(parse("Transition", whole)).decode())
try:
    parse("Transition", data + b'"colour": "red"}')
except ContractRefused as refused:
    print(refused)
print(len(CONTRACTS), schema_of("Transition")["$schema"])
```

```text
{"inEdgeKey":"LM1->LM2","nodeId":"LM2","outEdgeKey":"LM2->AP1","transitionGeomKind":"NON_TANGENT","turnRad":3.141593}
This is not a valid Transition: Object missing required field `turnRad`
20 https://json-schema.org/draft/2020-12/schema
```

Each contract has a JSON Schema (draft 2020-12), in the folder `schemas` beside this page and from `schema_of`.
"""


class Unexplained(Exception):
    """Members without a line, or lines without a member."""


def name_of(model: str) -> str:
    for ending in ENDINGS:
        model = model.removesuffix(ending)
    return model


def anchor(name: str) -> str:
    return name.lower()


def types() -> dict[str, dict[str, Any]]:
    """Every object of every contract by its name, in the order of first use."""
    found: dict[str, dict[str, Any]] = {}
    for contract in CONTRACTS:
        for model, form in schema_of(contract)["$defs"].items():
            found.setdefault(model, form)
    return found


class Lines:
    """The lines of contracts.toml; remembers which of them were used."""

    def __init__(self, text: str) -> None:
        self._lines: dict[str, dict[str, str]] = tomllib.loads(text)
        self._used: set[tuple[str, str]] = set()
        self._missing: list[str] = []

    def of(self, kind: str, member: str) -> str:
        for table in (kind, EVERYWHERE):
            line = self._lines.get(table, {}).get(member)
            if line is not None:
                self._used.add((table, member))
                return line
        self._missing.append(f"{kind}.{member}")
        return ""

    def settle(self) -> None:
        """Raises `Unexplained` when a member had no line, or a line no member."""
        every = {(table, member) for table, lines in self._lines.items() for member in lines}
        idle = [f"{table}.{member}" for table, member in sorted(every - self._used)]
        faults = [f"no line for {name}" for name in self._missing] + [f"no such member as {name}" for name in idle]
        if faults:
            raise Unexplained("; ".join(faults))


def page(explanations: str | None = None) -> str:
    """The text of fleet-contracts.md; raises `Unexplained`."""
    text = (FOLDER / "contracts.toml").read_text(encoding="utf-8") if explanations is None else explanations
    lines, forms = Lines(text), types()
    titles = {name_of(model) for model in forms}
    contracts = {name_of(model.__name__): name for name, model in CONTRACTS.items()}
    parts = [INTRO, "## The contracts", ""]
    parts += ["| contract | |", "|---|---|"]
    parts += [f"| [`{name}`](#{anchor(kind)}) | {lines.of(kind, 'about')} |" for kind, name in contracts.items()]
    for model, form in forms.items():
        kind = name_of(model)
        if "properties" not in form:
            continue
        schema = f", [schema](schemas/{contracts[kind]}.json)" if kind in contracts else ""
        head = f"The contract `{contracts[kind]}`{schema}." if kind in contracts else _part_of(model, forms, titles)
        parts += ["", f"## {kind}", "", head, "", *_table(kind, form, forms, lines)]
        if kind in contracts:
            parts += _examples(contracts[kind])
    lines.settle()
    parts += ["", *_events()]
    return "\n".join(parts).rstrip() + "\n"


def _events() -> Iterator[str]:
    """The events of a stream of a fleet, by `type`."""
    yield "## Events"
    yield ""
    yield "The events in [a stream](http.md) of a fleet and in the outcomes of its journal. Events of one tick have the"
    yield "same record in their id, and `ticked` comes first."
    yield ""
    yield "| `type` | members | |"
    yield "|---|---|---|"
    for event in get_args(FleetEvent):
        info = inspect.type_info(event)
        assert isinstance(info, inspect.StructType)
        members = ", ".join(f"`{field.encode_name}`" for field in info.fields)
        yield f"| `{info.tag}` | {members} | {' '.join((getdoc(event) or '').split())} |"


def _part_of(model: str, forms: Mapping[str, Any], titles: set[str]) -> str:
    owners = [name_of(owner) for owner, form in forms.items() if f'"#/$defs/{model}"' in json.dumps(form)]
    assert set(owners) <= titles
    return "In " + ", ".join(f"[`{owner}`](#{anchor(owner)})" for owner in owners) + "."


def _table(kind: str, form: Mapping[str, Any], forms: Mapping[str, Any], lines: Lines) -> Iterator[str]:
    yield "| member | type | |"
    yield "|---|---|---|"
    required = form.get("required", [])
    for member, value in form["properties"].items():
        may = "" if member in required else "optional; "
        yield f"| `{member}` | {_type(value, forms)} | {may}{lines.of(kind, member)} |"


def _examples(contract: str) -> Iterator[str]:
    """Payloads of a contract: as a specification prints it, with comments, and with all members."""
    hyphened = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", contract).lower()
    printed = PRINTED / f"fleet-{hyphened}.json5"
    if printed.is_file():
        yield from ("", "At least:", "", "```json5", printed.read_text(encoding="utf-8").rstrip(), "```")
    names = sorted(path.name for path in GOLDEN.glob(f"{contract}*.json"))
    whole = [name for name in names if name.removesuffix(".json").split("-")[0] == contract and "-base" not in name]
    texts = [(GOLDEN / name).read_text(encoding="utf-8").rstrip() for name in whole]
    for text in texts[:2]:
        if text.count("\n") < MOST_LINES:
            yield from ("", "```json", text, "```")


def _type(value: Mapping[str, Any], forms: Mapping[str, Any]) -> str:
    if "anyOf" in value:
        return " or ".join(_type(one, forms) for one in value["anyOf"])
    if "$ref" in value:
        model = value["$ref"].rpartition("/")[2]
        if "enum" in forms[model]:
            return ", ".join(f"`{word}`" for word in forms[model]["enum"]) if model != "Code" else "a code"
        return f"[{name_of(model)}](#{anchor(name_of(model))})"
    match value.get("type"):
        case "array" if "prefixItems" in value:
            return "[" + ", ".join(_type(one, forms) for one in value["prefixItems"]) + "]"
        case "array":
            return f"list of {_type(value.get('items', {}), forms)}"
        case "object":
            inner = value.get("additionalProperties")
            return f"object of {_type(inner, forms)}" if isinstance(inner, dict) and inner else "object"
        case str(plain):
            return {"string": "text", "boolean": "true or false"}.get(plain, plain)
    return "anything"


def schema_text(name: str) -> str:
    return json.dumps(schema_of(name), indent=2) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "fleet-contracts.md": page,
    **{f"schemas/{name}.json": partial(schema_text, name) for name in CONTRACTS},
}


def main(arguments: Sequence[str]) -> int:
    try:
        texts = {name: write() for name, write in PAGES.items()}
    except Unexplained as fault:
        print(f"docs/reference/contracts.toml: {fault}", file=sys.stderr)
        return 1
    if list(arguments) != ["--check"]:
        for name, text in texts.items():
            (FOLDER / name).parent.mkdir(exist_ok=True)
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    old = [name for name, text in texts.items() if not is_written(FOLDER / name, text)]
    for name in old:
        print(f"docs/reference/{name} is not up to date; run python scripts/contracts.py", file=sys.stderr)
    return 1 if old else 0


def is_written(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
