"""Tasks of a fleet: where they come from, who takes them, what each truck does next, and why a task waits.

dispatch     `Dispatch`: one step after the other
model        streams, tasks one by one, events, what a step comes to
states       the states of a task and how it gets from one to the next
book         all tasks, and what streams make
stock        goods and room, and who claims them
intake       events, taken in or refused
drivers      what each truck is about
ways         routes over pick and drop to rest
saving       tasks as plain values and back
truck_views  trucks as tasks see them, from what traffic knows
"""

from pendula.fleet.tasks.book import Task
from pendula.fleet.tasks.dispatch import Dispatch
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
    "Task",
    "TaskEvent",
    "TaskOrder",
    "TaskStream",
    "TaskSubmitted",
    "Transition",
    "TruckView",
    "truck_views",
]
