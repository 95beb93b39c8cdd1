"""JSON Schemas of a scenario, of settings and of the configuration of a run; limits come from the readers.

`file_schema` describes what is read strictly. What no schema can express (duplicate ids, lines with unknown ends,
profiles that extend themselves, digits after the point) `reading` finds; `settings` finds ranges that cross.
"""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Any

import msgspec

from pendula.credit.commands import Config
from pendula.credit.model import CODE_FORM, ID_FORM, Drift, EventType, Flow, ParticipantStatus, ParticipantType, Warmup
from pendula.credit.money import ATOMS, CENT, MOST
from pendula.credit.reading import FALSE, OPS, ROOT, TRUE
from pendula.credit.settings import TABLE, Kind, Setting, Settings

DRAFT = "https://json-schema.org/draft/2020-12/schema"
REQUIRED = ("schema_version", "scenario_id", "participants", "trustlines")
# Non-ASCII letters whose uppercase is ASCII.
CAPITALS = "[\\u00df\\u0131\\u017f\\ufb00-\\ufb06]"
SPACE = r"[\s\u001c-\u001f\u0085]*"
UNITS = MOST // ATOMS + 1  # every amount is below this; a float cannot tell the largest from it

DESCRIPTIONS = {
    "schema_version": "The version of the format, scenario/1.",
    "scenario_id": "The id of the scenario.",
    "name": "The display name of the scenario.",
    "description": "A description.",
    "seed": "Random seed, unless a run has its own.",
    "baseEquivalent": "The equivalent of lines that name none.",
    "equivalents": "The units of account; those of the lines need not be listed.",
    "participants": "The participants.",
    "groups": "Groups of participants, to which profiles may refer.",
    "behaviorProfiles": "Behaviour of participants: frequency, receivers and amounts of payments.",
    "trustlines": "Trustlines with their limits.",
    "events": "Events at virtual times.",
    "settings": "Warm-up, trust drift, and preferred directions of payments.",
}


def file_schema() -> dict[str, Any]:
    """A scenario file; a new copy each time, of plain JSON values in a fixed order."""
    sections = _sections()
    return {
        "$schema": DRAFT,
        "title": "A scenario of a credit network",
        "description": "What `pendula credit run` reads, as YAML or JSON.",
        "type": "object",
        "required": list(REQUIRED),
        "anyOf": [{"required": ["baseEquivalent"]}, {"required": ["equivalents"], **_each_line_names_its_own()}],
        "properties": {name: {"description": DESCRIPTIONS[name], **form} for name, form in sections.items()},
        "additionalProperties": False,
        "$defs": _definitions(),
    }


def settings_schema() -> dict[str, Any]:
    """The settings of a run as its configuration and its artifacts hold them; amounts in atoms."""
    return {"$schema": DRAFT, "title": "The settings of a run", **_settings_form()}


def config_schema() -> dict[str, Any]:
    """What a run is made of, as a journal keeps it; a scenario that is read leniently may be any object."""
    scenario = {name: form for name, form in file_schema().items() if name not in ("$schema", "$defs")}
    _, forms = msgspec.json.schema_components((Config,), ref_template="#/$defs/{name}")
    config = {name: form for name, form in forms["Config"].items() if name not in ("title", "description")}
    members = {**config["properties"], "settings": _ref("Settings"), "scenario": {"type": "object"}}
    strict = {"properties": {"scenario": _ref("Scenario")}}
    return {
        "$schema": DRAFT,
        "title": "The configuration of a run",
        **_plain(config),
        "properties": _plain(members),
        "if": {"properties": {"lenient": {"const": False}}},
        "then": strict,
        "$defs": {
            **_definitions(),
            "BehaviourName": _plain(forms["BehaviourName"]),
            "Scenario": scenario,
            "Settings": _settings_form(),
        },
    }


def _sections() -> dict[str, dict[str, Any]]:
    text = {"type": "string"}
    forms: dict[str, dict[str, Any]] = {
        "schema_version": {**text, "examples": ["scenario/1"]},
        "scenario_id": {**text, "minLength": 1},
        "name": text,
        "description": text,
        "seed": {"type": "integer", "minimum": 0},
        "baseEquivalent": _ref("code"),
        "equivalents": {"type": "array", "items": _ref("code"), "minItems": 1, "uniqueItems": True},
        "participants": {"type": "array", "items": _ref("participant"), "minItems": 1},
        "groups": _list_of(_ref("group")),
        "behaviorProfiles": _list_of(_ref("profile")),
        "trustlines": _list_of(_ref("trustline")),
        "events": _list_of(_ref("event")),
        "settings": _ref("settings"),
    }
    return {name: forms[name] for name in (*REQUIRED, *ROOT, "settings")}


def _each_line_names_its_own() -> dict[str, Any]:
    line = {"required": ["equivalent"], "properties": {"equivalent": {"type": "string"}}}
    return {"properties": {"trustlines": {"items": line}}}


def _definitions() -> dict[str, Any]:
    text, anything = {"type": "string"}, {"type": "object"}
    rule = {"trigger": {**text, "minLength": 1}, "action": {**text, "minLength": 1}, "params": anything}
    who = _participant()
    return {
        "id": {**text, "pattern": f"^{ID_FORM}$"},
        "code": {
            **text,
            "pattern": f"^{SPACE}({CODE_FORM.partition('{')[0]}|[a-z]|{CAPITALS}){{1,16}}{SPACE}$",
            "description": "1 to 16 letters, digits and _; read in capitals, without spaces around.",
        },
        "limit": _amount({"minimum": 0, "maximum": UNITS}),
        "amount": _amount({"minimum": -UNITS, "maximum": UNITS}),
        "participant": _object({**who, "metadata": anything}, required=("id", "type")),
        "group": _object({"id": _ref("id"), "label": text}, required=("id", "label")),
        "rule": _object(rule, required=("trigger", "action")),
        "profile": _object(
            {"id": _ref("id"), "extends": _ref("id"), "props": _props(), "rules": _list_of(_ref("rule"))},
            required=("id",),
        ),
        "trustline": _object(
            {
                "from": {**_ref("id"), "description": "The creditor: who is paid."},
                "to": {**_ref("id"), "description": "The debtor: who pays."},
                "limit": _ref("limit"),
                "equivalent": {"anyOf": [_ref("code"), {"type": "null"}]},
                "policy": _policy(),
            },
            required=("from", "to", "limit"),
        ),
        "event": _event(),
        "dated_payment": _dated_payment(),
        "dated_clearing": {
            "type": "object",
            "properties": {"equivalent": {"anyOf": [_ref("code"), {"type": "null"}]}},
        },
        **_effects(who),
        "settings": _scenario_settings(),
    }


def _participant() -> dict[str, Any]:
    return {
        "id": _ref("id"),
        "type": _choice(ParticipantType),
        "name": {"type": "string"},
        "status": _choice(ParticipantStatus, default="active"),
        "groupId": _ref("id"),
        "behaviorProfileId": _ref("id"),
    }


def _props() -> dict[str, Any]:
    """Open, and any value does: one that cannot be used is replaced by its default, and `check` says so."""
    return {
        "type": "object",
        "description": "tx_rate, equivalent_weights, recipient_group_weights, amount_model, flow_chains, "
        "flow_affinity, periodicity_factor, demand, base_p, cluster_bias; what else is here is kept and ignored.",
    }


def _policy() -> dict[str, Any]:
    words = "|".join(
        "".join(f"[{letter.upper()}{letter}]" for letter in word) for word in (*FALSE, *TRUE) if isinstance(word, str)
    )
    switch = {
        "anyOf": [
            {"type": ["boolean", "null"]},
            {"enum": [0, 1]},
            {"type": "string", "pattern": f"^{SPACE}({words}){SPACE}$"},
        ],
        "default": True,
    }
    return {
        "type": "object",
        "properties": {
            "auto_clearing": switch,
            "can_be_intermediate": switch,
            "max_hop_usage": {"type": ["integer", "null"], "minimum": 0, "description": "0 forbids mediation."},
            "blocked_participants": {"type": ["array", "null"], "items": _ref("id")},
            "daily_limit": {"description": "Kept, not enforced."},
            "status": {"description": "Kept, not interpreted."},
        },
    }


def _event() -> dict[str, Any]:
    text, anything = {"type": "string"}, {"type": "object"}
    words = {"type": "string", "minLength": 1, "maxLength": 50, "description": "A time in words never comes."}
    members = {
        "time": {"anyOf": [{"type": "integer", "minimum": 0}, words], "description": "Virtual milliseconds."},
        "type": _choice(EventType),
        "op": text,
        "label": text,
        "description": text,
        "effects": _list_of(anything),
        "params": anything,
        "metadata": anything,
    }
    payment, clearing = _ref("dated_payment"), _ref("dated_clearing")
    injections = {"type": "array", "minItems": 1, "items": {"anyOf": [_ref(op) for op in OPS]}}
    return {
        **_object(members, required=("time", "type")),
        "if": {"properties": {"type": {"const": "inject"}}, "required": ["type"]},
        "then": {"required": ["effects"], "properties": {"effects": injections}},
        "allOf": [
            {
                "if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
                "then": {"properties": {"params": action, "effects": _list_of(action)}},
            }
            for kind, action in (("payment", payment), ("clearing", clearing))
        ],
    }


def _dated_payment() -> dict[str, Any]:
    """Open: other members are the owner's own."""
    ends = ["from", "to", "amount"]
    return {
        "type": "object",
        "properties": {
            "from": {"type": "string", "minLength": 1, "description": "Who pays."},
            "to": {"type": "string", "minLength": 1, "description": "Who is paid."},
            "amount": _ref("amount"),
            "equivalent": {"anyOf": [_ref("code"), {"type": "null"}], "description": "The base unless given."},
        },
        "dependentRequired": {end: [other for other in ends if other != end] for end in ends},
    }


def _effects(who: Mapping[str, Any]) -> dict[str, Any]:
    name = {"type": "string", "minLength": 1}
    newcomer = {**who, "groupId": {"type": "string"}, "behaviorProfileId": {"type": "string"}}
    directions = {"enum": ["sponsor_credits_new", "new_credits_sponsor"], "default": "sponsor_credits_new"}
    members: dict[str, dict[str, Any]] = {
        "add_participant": {
            "participant": _object(newcomer, required=("id", "type")),
            "initial_trustlines": _list_of(_ref("first_line")),
        },
        "create_trustline": {"from": name, "to": name, "equivalent": _ref("code"), "limit": _ref("amount")},
        "freeze_participant": {"participant_id": name, "freeze_trustlines": {"type": "boolean", "default": True}},
        "inject_debt": {
            **dict.fromkeys(("from", "to", "creditor", "debtor"), name),
            "equivalent": _ref("code"),
            "amount": _ref("amount"),
        },
    }
    required: dict[str, tuple[str, ...]] = {
        "add_participant": ("participant",),
        "create_trustline": ("from", "to", "equivalent", "limit"),
        "freeze_participant": ("participant_id",),
        "inject_debt": ("equivalent", "amount"),
    }
    forms = {op: _object({"op": {"const": op}, **members[op]}, required=("op", *required[op])) for op in OPS}
    forms["inject_debt"]["allOf"] = [
        {"anyOf": [{"required": [end]}, {"required": [alias]}]}
        for end, alias in (("from", "creditor"), ("to", "debtor"))
    ]
    line = {"sponsor": name, "equivalent": _ref("code"), "limit": _ref("amount"), "direction": directions}
    return {**forms, "first_line": _object(line, required=("sponsor", "equivalent", "limit"))}


def _scenario_settings() -> dict[str, Any]:
    drift, flow = Drift(), Flow()
    switch = {"type": "boolean", "default": False}
    rates = ("growth_rate", "decay_rate", "max_growth", "min_limit_ratio", "overload_threshold")
    shares = {name: _share(getattr(drift, name)) for name in rates}
    shares["max_growth"] = {"type": "number", "minimum": 1, "default": int(drift.max_growth)}
    return _object(
        {
            "warmup": _object(
                {"ticks": {"type": "integer", "minimum": 0, "default": 0}, "floor": _share(Warmup().floor)}
            ),
            "trust_drift": _object({"enabled": switch, **shares}),
            "flow": _object(
                {
                    "enabled": switch,
                    "default_affinity": _share(flow.default_affinity),
                    "reciprocity_bonus": {
                        **_share(None),
                        "description": "0.15 where flow is given, 0 where it is not.",
                    },
                }
            ),
        }
    )


def _settings_form() -> dict[str, Any]:
    usual = msgspec.to_builtins(Settings())
    return _object(
        {setting.name: {"description": setting.meaning, **_setting(setting, usual[setting.name])} for setting in TABLE}
    )


def _setting(setting: Setting, usual: Any) -> dict[str, Any]:
    nullable = usual is None
    match setting.kind:
        case Kind.SWITCH:
            return {"type": "boolean", "default": usual}
        case Kind.WORD:
            assert setting.words is not None
            return _choice(setting.words, default=usual)
        case Kind.AMOUNT:
            return {"type": ["integer", "null"], "minimum": 0, "maximum": MOST, "multipleOf": CENT, "default": usual}
        case Kind.DECIMAL:
            number = {"type": "number", "minimum": setting.least, "maximum": setting.most}
            return {"anyOf": [number, {"type": "string"}], "description": f"{setting.meaning}; {usual} unless given"}
        case Kind.INTEGER:
            kind: Any = ["integer", "null"] if nullable else "integer"
            return {"type": kind, "minimum": setting.least, "maximum": setting.most, "default": usual}


def _amount(range_: Mapping[str, int]) -> dict[str, Any]:
    pattern = rf"^{SPACE}[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?{SPACE}$"
    return {"anyOf": [{"type": "number", **range_}, {"type": "string", "pattern": pattern}]}


def _share(usual: Decimal | None) -> dict[str, Any]:
    # Plain JSON has no exact fractions: what holds without the member is said in words.
    form: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
    return form if usual is None else {**form, "description": f"{usual} unless given."}


def _choice(kind: type[StrEnum], default: str | None = None) -> dict[str, Any]:
    form: dict[str, Any] = {"enum": [member.value for member in kind]}
    return form if default is None else {**form, "default": default}


def _object(members: Mapping[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    form: dict[str, Any] = {"type": "object", "properties": dict(members), "additionalProperties": False}
    return {**form, "required": list(required)} if required else form


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def _plain(value: Any) -> Any:
    """Plain JSON: lists for tuples, and the ends of a pattern as other languages write them."""
    match value:
        case str() if value.startswith(r"\A"):
            return f"^{value[2:-2]}$"
        case dict():
            return {name: _plain(member) for name, member in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value
