"""Reader of traffic parameters, with the names of the contract."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import structs

from pendula.documents import Cursor, Document
from pendula.fleet.driving.params import NodeLockPolicy, TrafficParams, contract_name
from pendula.fleet.reading.profiles import refuse_unknown
from pendula.fleet.reading.values import length

TRAFFIC_PARAMS: Mapping[str, str] = {contract_name(field): field for field in TrafficParams.__struct_fields__}


def read_traffic_params(document: Document, usual: TrafficParams) -> TrafficParams:
    """The traffic parameters of a document; missing ones are taken from `usual`. Raises `DocumentRefused`."""

    def read(root: Cursor) -> TrafficParams:
        refuse_unknown(root, tuple(TRAFFIC_PARAMS))
        return traffic_params(root, usual)

    return document.read(read)


def traffic_params(at: Cursor, usual: TrafficParams | None = None) -> TrafficParams:
    """Traffic parameters of an object; missing ones have their defaults."""
    members = at.object(optional=tuple(TRAFFIC_PARAMS), unknown="keep")
    given = {field: _value(members[name], field) for name, field in TRAFFIC_PARAMS.items() if name in members}
    return structs.replace(usual or TrafficParams(), **given)


def _value(at: Cursor, field: str) -> Any:
    usual = getattr(TrafficParams(), field)
    if isinstance(usual, bool):
        return at.boolean()
    if isinstance(usual, Enum):
        return at.choice(NodeLockPolicy)
    return length(at) if field.endswith(("_um", "_urad")) else at.integer(min=0)
