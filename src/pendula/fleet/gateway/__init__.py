"""Where a fleet meets its trucks: what a connection to them must do, whatever they speak.

protocol          `Gateway`: what goes out and what comes in
registration      which trucks are let in: those that can be stopped
selection         what a truck is told, by what it can do
operations        which operation is meant where only a truck is named
reception         what it hands over, made fit to be decided upon
reports           reports in metres and radians, and in the integers of ticks
acknowledgements  newest commands only, and a watchdog for trucks that have none
"""

from pendula.fleet.gateway.acknowledgements import Outbox
from pendula.fleet.gateway.operations import IssuedOperations
from pendula.fleet.gateway.protocol import Gateway, Received
from pendula.fleet.gateway.reception import GatewayFailed, Heard, heard
from pendula.fleet.gateway.registration import Capability, RobotRefused, register
from pendula.fleet.gateway.reports import ReportBatch, ReportRefused, report_of, state_of
from pendula.fleet.gateway.selection import Selected, abilities

__all__ = [
    "Capability",
    "Gateway",
    "GatewayFailed",
    "Heard",
    "IssuedOperations",
    "Outbox",
    "Received",
    "ReportBatch",
    "ReportRefused",
    "RobotRefused",
    "Selected",
    "abilities",
    "heard",
    "register",
    "report_of",
    "state_of",
]
