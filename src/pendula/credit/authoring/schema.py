"""JSON Schemas of a scenario, of settings and of the configuration of a run, from the structs that read them.

`file_schema` describes what is read strictly. What no schema can express (duplicate ids, lines with unknown ends,
profiles that extend themselves, digits after the point) `reading` finds; `settings` finds ranges that cross.
"""

from typing import Any

import msgspec

from pendula.credit.commands import Config
from pendula.credit.money import CENT, MOST
from pendula.credit.reading import ScenarioFile
from pendula.credit.settings import TABLE, Kind, Setting, Settings
from pendula.documents.schema import DRAFT, components

LINE_WITH_EQUIVALENT = {"required": ["equivalent"], "properties": {"equivalent": {"type": "string"}}}


def file_schema() -> dict[str, Any]:
    """A scenario file; a new copy each time, of plain JSON values in a fixed order."""
    root, definitions = _scenario()
    return {
        "$schema": DRAFT,
        **root,
        "title": "A scenario of a credit network",
        "description": "What `pendula credit run` reads, as YAML or JSON.",
        "$defs": definitions,
    }


def settings_schema() -> dict[str, Any]:
    """The settings of a run as its configuration and its artifacts hold them; amounts in atoms."""
    return {"$schema": DRAFT, "title": "The settings of a run", **_settings()}


def config_schema() -> dict[str, Any]:
    """What a run is made of, as a journal keeps it; a scenario that is read leniently may be any object."""
    scenario, definitions = _scenario()
    config = components([Config])[1]["Config"]
    members = {**config["properties"], "settings": {"$ref": "#/$defs/Settings"}, "scenario": {"type": "object"}}
    return {
        "$schema": DRAFT,
        **config,
        "title": "The configuration of a run",
        "properties": members,
        "if": {"properties": {"lenient": {"const": False}}},
        "then": {"properties": {"scenario": {"$ref": "#/$defs/Scenario"}}},
        "$defs": {**definitions, **components([Config])[1], "Scenario": scenario, "Settings": _settings()},
    }


def _scenario() -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a file and its definitions, with the rules that concern several members."""
    definitions = components([ScenarioFile])[1]
    root = definitions.pop("ScenarioFile")
    lines = {"properties": {"trustlines": {"items": LINE_WITH_EQUIVALENT}}}
    root["anyOf"] = [{"required": ["baseEquivalent"]}, {"required": ["equivalents"], **lines}]
    ends = ("from", "to", "amount")
    definitions["Paid"]["dependentRequired"] = {end: [other for other in ends if other != end] for end in ends}
    definitions["InjectDebt"]["allOf"] = [
        {"anyOf": [{"required": [end]}, {"required": [alias]}]}
        for end, alias in (("from", "creditor"), ("to", "debtor"))
    ]
    return root, definitions


def _settings() -> dict[str, Any]:
    usual = msgspec.to_builtins(Settings())
    members = {row.name: {"description": row.meaning, **_setting(row, usual[row.name])} for row in TABLE}
    return {"type": "object", "properties": members, "additionalProperties": False}


def _setting(setting: Setting, usual: Any) -> dict[str, Any]:
    match setting.kind:
        case Kind.SWITCH:
            return {"type": "boolean", "default": usual}
        case Kind.WORD:
            return {"enum": list(map(str, setting.words or ())), "default": usual}
        case Kind.AMOUNT:
            return {"type": ["integer", "null"], "minimum": 0, "maximum": MOST, "multipleOf": CENT, "default": usual}
        case Kind.DECIMAL:
            number = {"type": "number", "minimum": setting.least, "maximum": setting.most}
            return {"anyOf": [number, {"type": "string"}], "description": f"{setting.meaning}; {usual} unless given"}
        case Kind.INTEGER:
            kind: Any = "integer" if usual is not None else ["integer", "null"]
            return {"type": kind, "minimum": setting.least, "maximum": setting.most, "default": usual}
