"""JSON Schemas of all contracts, made from the models, and the one place where payloads are read and written."""

from decimal import Decimal
from typing import Any

import msgspec

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
    "RollingTargetCommand": traffic.RollingTargetCommand,
    "Acknowledgement": traffic.Acknowledgement,
    "OperatorAction": traffic.OperatorAction,
    "OperatorAnswer": traffic.OperatorAnswer,
    "TickRecord": traffic.TickRecord,
    "Alert": traffic.Alert,
    "Grant": traffic.Grant,
}


class ContractRefused(InputRefused):
    """A payload that does not fit its contract. Facts: `contract`, `reason`."""

    code = "contract_refused"


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a contract; numbers are numbers, whatever their digits."""
    (form,), definitions = msgspec.json.schema_components([CONTRACTS[name]], ref_template="#/$defs/{name}")
    whole = {"$schema": DRAFT, "title": name, **form, "$defs": definitions}
    result: dict[str, Any] = _numbers(whole)
    return result


def _numbers(form: Any) -> Any:
    if isinstance(form, dict):
        if form.get("format") == "decimal":
            return {"type": "number"}
        return {name: _numbers(value) for name, value in form.items()}
    return [_numbers(one) for one in form] if isinstance(form, list) else form


def parse(name: str, data: bytes) -> msgspec.Struct:
    """A payload as its model; raises `ContractRefused` for a wrong form or another major version."""
    try:
        value: msgspec.Struct = msgspec.json.Decoder(CONTRACTS[name], float_hook=Decimal).decode(data)
    except msgspec.DecodeError as error:
        raise ContractRefused(f"This is not a valid {name}: {error}", contract=name, reason=str(error)) from error
    given = getattr(value, "contractVersion", f"{MAJOR}.0.0")
    if given.split(".")[0] != MAJOR:
        reason = f"contract version {given} is not read here, only {MAJOR}.x.y"
        raise ContractRefused(f"This is not a {name} of this version: {reason}", contract=name, reason=reason)
    return value


def serialise(value: msgspec.Struct) -> bytes:
    """The canonical bytes of a payload."""
    return encode(value)
