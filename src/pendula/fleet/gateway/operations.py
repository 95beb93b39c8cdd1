"""Which operation a gateway means that names a truck alone: the one it was told last.

So it cannot end what it was not told yet, however often it says that the one before is over.
"""

from collections.abc import Iterable

from msgspec import UNSET

from pendula.fleet.tasks import Operation, OperationDone

# No operation has this name: what was never told does not count.
NONE_TOLD = ""


class ToldOperations:
    """The last operation of every truck of which its gateway knows."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def note(self, operations: Iterable[Operation]) -> None:
        self._last.update((one.robot_id, one.operation_id) for one in operations)

    def meant(self, robot_id: str) -> str:
        return self._last.get(robot_id, NONE_TOLD)

    def named(self, done: Iterable[str | OperationDone]) -> tuple[OperationDone, ...]:
        """Each with the operation it is about."""
        return tuple(map(self._named, done))

    def _named(self, one: str | OperationDone) -> OperationDone:
        if isinstance(one, OperationDone) and one.operation_id is not UNSET:
            return one
        robot_id = one if isinstance(one, str) else one.robot_id
        return OperationDone(robot_id, self.meant(robot_id))
