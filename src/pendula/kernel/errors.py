"""What goes wrong, as exceptions with stable codes.

    PendulaError
    ├── InputRefused            what was handed in cannot be used; nothing happened (exit 1, HTTP 4xx)
    │   ├── LimitExceeded       a named limit was passed
    │   ├── NotCanonical        a value that has no canonical bytes
    │   ├── InvalidTimestamp    and NaiveTimestamp, TimestampOutOfRange, MixedTimes
    │   └── DocumentRefused     a YAML or JSON document, with all its faults (pendula.documents)
    ├── WrongUsage              the call itself makes no sense (exit 2)
    └── WorldBroken             disk, database, port, corrupt file (exit 3, HTTP 5xx)
        └── MissingExtra        a part of Pendula that is not installed

A wish that an engine cannot grant is none of these: it is a `Refusal`, a value. An `AssertionError` means that
Pendula itself is wrong.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self


class PendulaError(Exception):
    """Base of all errors: a stable `code`, one sentence, and the facts, also readable as attributes."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 3

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.details = details

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["details"][name]
        except KeyError:
            raise AttributeError(f"{type(self).__name__} has no fact {name!r}") from None


class InputRefused(PendulaError):
    code = "input_refused"
    exit_code = 1


class WrongUsage(PendulaError):
    code = "wrong_usage"
    exit_code = 2


class WorldBroken(PendulaError):
    code = "world_broken"
    exit_code = 3


class LimitExceeded(InputRefused):
    """Facts: `limit` (its name), `value`, `allowed`."""

    code = "limit_exceeded"


class MissingExtra(WorldBroken):
    """A part of Pendula is not installed. Facts: `extra` (null for the plain installation), the absent `modules`."""

    code = "missing_extra"

    @classmethod
    def of(cls, extra: str | None, what: str, modules: Sequence[str]) -> Self:
        """The error with the command that installs what `what` needs: an extra, or all that a plain install brings."""
        package = "pendula" if extra is None else f'"pendula[{extra}]"'
        message = f"{what} needs {' and '.join(modules)}; install with: pip install {package}"
        return cls(message, extra=extra, modules=list(modules))


class NotCanonical(InputRefused):
    """Facts: `path` of the value that has no canonical form."""

    code = "not_canonical"


def in_words(trouble: BaseException) -> str:
    """The `repr` of an exception as text that can be written down; its name where even that fails.

    What comes out of user code has words of user code: they may raise anything, or hold half a character.
    """
    try:
        return repr(trouble).encode(errors="backslashreplace").decode()
    except BaseException:
        return type(trouble).__name__
