"""Many pieces of work: one after the other, on processes of this machine, or on a Dask cluster.

work        what work is, where it is done, and how it comes to grief
processes   here, or on processes of this machine that end with it
cluster     on a Dask cluster of the same Pendula

What comes back is in the order of the tasks and the same wherever they were done.
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
