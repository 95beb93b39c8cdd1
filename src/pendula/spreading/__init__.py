"""Runs many tasks: in this process, in worker processes, or on a Dask cluster.

work        the work protocol, where tasks run, and their errors
processes   tasks in this process or in worker processes that end with it
cluster     tasks on a Dask cluster with the same Pendula version

Results are in the order of the tasks and do not depend on where they ran.
"""

from pendula.spreading.processes import spread
from pendula.spreading.work import (
    RUNS_MOST,
    Bench,
    ClusterFailed,
    Stopped,
    TaskFailed,
    Watch,
    Where,
    Work,
    WorkerLost,
)

__all__ = [
    "RUNS_MOST",
    "Bench",
    "ClusterFailed",
    "Stopped",
    "TaskFailed",
    "Watch",
    "Where",
    "Work",
    "WorkerLost",
    "spread",
]
