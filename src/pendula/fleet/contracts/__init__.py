"""Payloads of the scheduler as typed models, and their JSON Schemas.

maps       maps, trucks and routes
traffic    the running system: states, requests, locks, commands, tasks, operators
schema     the table of all contracts: parse, serialise and generate schemas
"""

from pendula.fleet.contracts.schema import (
    CONTRACTS,
    LISTS,
    ContractRefused,
    contract_of,
    list_of,
    parse,
    parse_list,
    schema_of,
    serialise,
)
from pendula.fleet.contracts.traffic import (
    HoldReason,
    LockResult,
    LockSnapshot,
    OperatorAction,
    Phase,
    PoseContract,
    ProgressContract,
    RobotHealth,
    RobotState,
    RobotStatus,
    RollingTargetCommand,
    TaskView,
    TickSnapshot,
)

__all__ = [
    "CONTRACTS",
    "LISTS",
    "ContractRefused",
    "HoldReason",
    "LockResult",
    "LockSnapshot",
    "OperatorAction",
    "Phase",
    "PoseContract",
    "ProgressContract",
    "RobotHealth",
    "RobotState",
    "RobotStatus",
    "RollingTargetCommand",
    "TaskView",
    "TickSnapshot",
    "contract_of",
    "list_of",
    "parse",
    "parse_list",
    "schema_of",
    "serialise",
]
