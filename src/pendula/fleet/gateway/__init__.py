"""The connection between a fleet and its trucks, independent of their protocol.

protocol          `Gateway`: commands out, reports in
registration      admission of truck types: only those that can be stopped
selection         commands reduced to the capabilities of each truck
operations        the operation that a report without an operation id refers to
reception         validation of what a gateway returns
reports           conversion of reports between metres and the integers of ticks
acknowledgements  newest commands only, and a watchdog for trucks without one
"""

from pendula.fleet.gateway.acknowledgements import Outbox
from pendula.fleet.gateway.operations import IssuedOperations
from pendula.fleet.gateway.protocol import Gateway, Received
from pendula.fleet.gateway.reception import GatewayFailed, GatewayInput, read_gateway
from pendula.fleet.gateway.registration import Capability, RobotRefused, register
from pendula.fleet.gateway.reports import ReportBatch, ReportRefused, report_of, state_of
from pendula.fleet.gateway.selection import Selected, abilities

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
