"""Tasks and operator actions: where tasks come from, which truck takes them, and what each truck does next."""

from pendula.fleet.tasks.assignment import TaskReason
from pendula.fleet.tasks.book import Task, truck_views
from pendula.fleet.tasks.dispatch import Dispatch, TasksRefused
from pendula.fleet.tasks.model import (
    Conditions,
    DispatchParams,
    DispatchStep,
    GoodsReported,
    Operation,
    OperationDone,
    OperationFailed,
    PriorityChanged,
    RoomReported,
    StreamEnded,
    StreamSet,
    TaskEvent,
    TaskOrder,
    TaskStream,
    TaskSubmitted,
    Transition,
    TruckView,
)

__all__ = [
    "Conditions",
    "Dispatch",
    "DispatchParams",
    "DispatchStep",
    "GoodsReported",
    "Operation",
    "OperationDone",
    "OperationFailed",
    "PriorityChanged",
    "RoomReported",
    "StreamEnded",
    "StreamSet",
    "Task",
    "TaskEvent",
    "TaskOrder",
    "TaskReason",
    "TaskStream",
    "TaskSubmitted",
    "TasksRefused",
    "Transition",
    "TruckView",
    "truck_views",
]
