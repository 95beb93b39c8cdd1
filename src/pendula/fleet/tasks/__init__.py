"""Tasks of a fleet: where they come from, which truck takes them, what each truck does next, why a task waits.

dispatch     `Dispatch`: one step after the other
model        streams, tasks one by one, events, what a step comes to
states       the states of a task and how it gets from one to the next
book         all tasks, what streams make, and which comes next
stock        goods and room, and who claims them
intake       events, taken in or refused
drivers      what each truck is about
tours        what each truck does next, and what becomes of its task when it cannot
assignment   which truck takes which task, or why none does
ways         routes over pick and drop to rest
ports        what plans routes, which can be replaced alone
saving       tasks and drivers as plain data and back
truck_views  trucks as tasks see them, from what traffic knows
"""

from pendula.fleet.tasks.assignment import TaskReason
from pendula.fleet.tasks.book import Task
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
from pendula.fleet.tasks.truck_views import truck_views

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
