"""Governed objects with replies as plain JSON, for tests that compare whole replies."""

from typing import Any

from pendula.governance import GovernedObjects
from pendula.governance import governed as typed
from pendula.jobs.messages import Message, plain


def governed(scheduler: Any) -> Any:
    """The governed objects of a scheduler; mypy checks the typed ones in `test_interface`."""
    return Plain(typed(scheduler))


class Plain:
    def __init__(self, objects: GovernedObjects) -> None:
        self._objects = objects

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._objects, name)

        def made(*given: Any, **members: Any) -> Any:
            answer = call(*given, **members)
            return plain(answer) if isinstance(answer, Message) else Plain(answer)

        return made
