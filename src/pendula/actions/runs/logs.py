"""The two logs of a run, in memory or on a disk: `world_log.jsonl`, and one `pc_log_epochNN.jsonl` for each chunk."""

from typing import Self

from pendula.actions.events import EpochBegan
from pendula.actions.runs.log_files import LogFiles
from pendula.actions.runs.log_lines import LogLines
from pendula.kernel.disk import Disk


class Logs(LogLines):
    """Both logs of a run as JSON lines; `feed` events in order.

    Without a disk the lines stay in memory. With a disk they are written; `feed` returns when they are durable, `write`
    does not wait. A closed chunk is never opened again.
    """

    def __init__(self, header: EpochBegan | None = None, disk: Disk | None = None) -> None:
        """Create new logs. Raises `InputRefused` if the disk has logs (see `continued`)."""
        super().__init__(header, None if disk is None else LogFiles.new(disk))

    @classmethod
    def continued(cls, disk: Disk) -> Self:
        """Continue the logs in a folder; an empty folder expects the header of an epoch.

        Events that are already written are skipped, so after a crash all events may be fed again. A torn last line is
        removed.
        """
        logs = cls()
        logs._set_up(LogFiles.found(disk))
        return logs
