"""JSON Schemas of all contracts, generated from the models; reads and writes payloads."""

from decimal import Decimal
from types import GenericAlias
from typing import Any

import msgspec

from pendula.documents import DocumentRefused, Format, read_bytes
from pendula.fleet.contracts import maps, traffic
from pendula.fleet.reading.values import MAJOR
from pendula.kernel.canonical import encode
from pendula.kernel.errors import InputRefused

DRAFT = "https://json-schema.org/draft/2020-12/schema"

CONTRACTS: dict[str, type[msgspec.Struct]] = {
    "RobotProfile": maps.RobotProfileContract,
    "SourceMap": maps.SourceMapContract,
    "CompiledMap": maps.CompiledMapContract,
    "RoutePlan": maps.RoutePlanContract,
    "Cell": maps.CellContract,
    "Transition": maps.TransitionContract,
    "RobotState": traffic.RobotState,
    "Stream": traffic.StreamContract,
    "Task": traffic.TaskContract,
    "CorridorRequest": traffic.CorridorRequest,
    "LockResult": traffic.LockResult,
    "LockSnapshot": traffic.LockSnapshot,
    "TickSnapshot": traffic.TickSnapshot,
    "RollingTargetCommand": traffic.RollingTargetCommand,
    "Acknowledgement": traffic.Acknowledgement,
    "OperatorAction": traffic.OperatorAction,
    "OperatorAnswer": traffic.OperatorAnswer,
    "TickRecord": traffic.TickRecord,
    "Alert": traffic.Alert,
    "Grant": traffic.Grant,
}

# Members under which HTTP bodies and answers wrap lists of payloads, and the other members of such answers.
LISTS = {"lockResults": "LockResult", "robots": "RobotState", "reports": "RobotState"}
_OF_ANSWERS = ("tick", "nowMs")


class ContractRefused(InputRefused):
    """A payload does not match its contract. Facts: `contract`, `reason`."""

    code = "contract_refused"


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a contract; decimals are numbers."""
    (form,), definitions = msgspec.json.schema_components([CONTRACTS[name]], ref_template="#/$defs/{name}")
    whole = {"$schema": DRAFT, "title": name, **form, "$defs": definitions}
    result: dict[str, Any] = _numbers(whole)
    return result


def _numbers(form: Any) -> Any:
    if isinstance(form, dict):
        if form.get("format") == "decimal":
            return {"type": "number"}
        return {name: _numbers(value) for name, value in form.items()}
    return [_numbers(item) for item in form] if isinstance(form, list) else form


def parse(name: str, data: bytes | str) -> msgspec.Struct:
    """A payload, JSON or JSON5, as its model; raises `ContractRefused` for a wrong form or another major version."""
    try:
        value = _read(name, data.encode() if isinstance(data, str) else data)
    except (msgspec.ValidationError, DocumentRefused) as error:
        raise ContractRefused(f"This is not a valid {name}: {error}", contract=name, reason=str(error)) from error
    _require_version(value, name)
    return value


def _require_version(value: msgspec.Struct, name: str) -> None:
    version = getattr(value, "contractVersion", msgspec.UNSET)
    given = f"{MAJOR}.0.0" if version is msgspec.UNSET else version
    if given.split(".")[0] != MAJOR:
        reason = f"contract version {given} is not supported, only {MAJOR}.x.y"
        raise ContractRefused(f"This is not a {name} of this version: {reason}", contract=name, reason=reason)


def list_of(data: bytes | str) -> str | None:
    """The member under which an HTTP answer wraps a list of payloads; None if the payload is not such a list."""
    try:
        value = read_bytes(data.encode() if isinstance(data, str) else data, Format.JSON5, "payload").value
    except DocumentRefused:
        return None
    if not isinstance(value, dict) or not value.keys() <= {*LISTS, *_OF_ANSWERS}:
        return None
    return next((member for member in LISTS if isinstance(value.get(member), list)), None)


def parse_list(member: str, data: bytes | str) -> msgspec.Struct:
    """The payloads wrapped in `member`, each validated; raises `ContractRefused` with the place of a fault."""
    name = LISTS[member]
    wrapped = msgspec.defstruct(
        f"{name}s",
        [
            (member, GenericAlias(tuple, (CONTRACTS[name], ...))),
            *((other, Any, msgspec.UNSET) for other in _OF_ANSWERS),
        ],
        frozen=True,
    )
    try:
        value = _read_as(wrapped, name, data.encode() if isinstance(data, str) else data)
    except (msgspec.ValidationError, DocumentRefused) as error:
        raise ContractRefused(f"This is no list of valid {name}: {error}", contract=name, reason=str(error)) from error
    for item in getattr(value, member):
        _require_version(item, name)
    return value


def contract_of(data: bytes | str) -> str:
    """The name of the contract that fits a payload best: fewest missing required members, then fewest unknown members.
    Raises `ContractRefused` if no contract knows any of its members."""
    try:
        value = read_bytes(data.encode() if isinstance(data, str) else data, Format.JSON5, "payload").value
    except DocumentRefused as error:
        raise ContractRefused(f"This is no payload: {error}", contract=None, reason=str(error)) from error
    given = set(value) if isinstance(value, dict) else set()
    # Ties are broken by name.
    fits = sorted((*_fit(CONTRACTS[name], given), name) for name in CONTRACTS)
    _, unknown, name = fits[0]
    if unknown == len(given):
        reason = f"no contract has its members; the contracts are {', '.join(CONTRACTS)}"
        raise ContractRefused(f"This is no payload: {reason}", contract=None, reason=reason)
    return name


def _fit(model: type[msgspec.Struct], given: set[str]) -> tuple[int, int]:
    """The number of missing required members and of unknown members."""
    fields = msgspec.structs.fields(model)
    required = {field.encode_name for field in fields if field.required}
    return len(required - given), len(given - {field.encode_name for field in fields})


def _read(name: str, data: bytes) -> msgspec.Struct:
    return _read_as(CONTRACTS[name], name, data)


def _read_as(form: type[msgspec.Struct], name: str, data: bytes) -> msgspec.Struct:
    try:
        value: msgspec.Struct = msgspec.json.Decoder(form, float_hook=Decimal).decode(data)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Perhaps JSON5 written by hand; otherwise the document reader reports the syntax error.
        return msgspec.convert(read_bytes(data, Format.JSON5, name).value, form)
    return value


def serialise(value: msgspec.Struct) -> bytes:
    """The canonical bytes of a payload."""
    return encode(value)
