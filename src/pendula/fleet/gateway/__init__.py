"""The connection between a fleet and its trucks, independent of their protocol."""

from pendula.fleet.gateway.protocol import (
    Gateway,
    IssuedOperations,
    Outbox,
    Received,
    RobotRefused,
    Selected,
    abilities,
    register,
)
from pendula.fleet.gateway.reports import (
    GatewayFailed,
    GatewayInput,
    ReportBatch,
    ReportRefused,
    read_gateway,
    report_of,
    state_of,
)
from pendula.fleet.map.trucks import Capability

__all__ = [
    "Capability",
    "Gateway",
    "GatewayFailed",
    "GatewayInput",
    "IssuedOperations",
    "Outbox",
    "Received",
    "ReportBatch",
    "ReportRefused",
    "RobotRefused",
    "Selected",
    "abilities",
    "read_gateway",
    "register",
    "report_of",
    "state_of",
]
