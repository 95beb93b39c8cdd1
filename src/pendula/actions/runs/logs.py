"""The two logs of a run, kept or on a disk: `world_log.jsonl`, and one `pc_log_epochNN.jsonl` for each chunk."""

from typing import Self

from pendula.actions.events import EpochBegan
from pendula.actions.runs.log_files import LogFiles
from pendula.actions.runs.log_lines import LogLines
from pendula.kernel.disk import Disk


class Logs(LogLines):
    """Both logs of a run as JSON lines; `feed` events in the order they came.

    Without a disk they are kept. With a disk they are written as they come, and nothing is kept. What `feed` was given
    is durable when it returns; `write` does the same without waiting for the disk. A closed chunk is never opened
    again.
    """

    def __init__(self, header: EpochBegan | None = None, disk: Disk | None = None) -> None:
        """New logs; `InputRefused` if the disk has some already (see `continued`)."""
        super().__init__(header, None if disk is None else LogFiles.new(disk))

    @classmethod
    def continued(cls, disk: Disk) -> Self:
        """The logs in a folder, to go on with; an empty folder waits for the header of an epoch.

        What is fed and stands there already is passed over, so that after a crash everything may be fed again. A line
        that was torn by a crash is taken away.
        """
        logs = cls()
        logs._set_up(LogFiles.found(disk))
        return logs
