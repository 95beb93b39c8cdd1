"""The operation that a report without an operation id refers to: the last one sent to the gateway of the truck.

So a repeated completion cannot end an operation that the gateway does not know yet.
"""

from collections.abc import Iterable

from msgspec import UNSET

from pendula.fleet.tasks import Operation, OperationDone

# No operation has this id.
NO_OPERATION = ""


class IssuedOperations:
    """The last operation of each truck that its gateway knows."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def note(self, operations: Iterable[Operation]) -> None:
        self._last.update((operation.robot_id, operation.operation_id) for operation in operations)

    def last_of(self, robot_id: str) -> str:
        return self._last.get(robot_id, NO_OPERATION)

    def with_ids(self, done: Iterable[str | OperationDone]) -> tuple[OperationDone, ...]:
        """Completions with the ids of their operations."""
        return tuple(map(self._with_id, done))

    def _with_id(self, done: str | OperationDone) -> OperationDone:
        if isinstance(done, OperationDone) and done.operation_id is not UNSET:
            return done
        robot_id = done if isinstance(done, str) else done.robot_id
        return OperationDone(robot_id, self.last_of(robot_id))
