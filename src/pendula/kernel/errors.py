"""Exceptions with stable codes.

    PendulaError
    ├── InputRefused            the input is invalid; nothing happened (exit 1, HTTP 4xx)
    │   ├── LimitExceeded       a named limit was exceeded
    │   ├── NotCanonical        a value without canonical bytes
    │   ├── InvalidTimestamp    and NaiveTimestamp, TimestampOutOfRange, MixedTimes
    │   └── DocumentRefused     a YAML or JSON document, with all its faults (pendula.documents)
    ├── WrongUsage              the call itself is wrong (exit 2)
    └── WorldBroken             disk, database, port, corrupt file (exit 3, HTTP 5xx)
        └── MissingExtra        an optional dependency is not installed

A command that an engine rejects raises none of these: it returns a `Refusal`. An `AssertionError` is a bug in Pendula.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Self


class PendulaError(Exception):
    """Base of all errors: a stable `code`, a one-sentence message, and facts, also readable as attributes."""

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
    """An optional dependency is not installed. Facts: `extra` (null for the plain installation), missing `modules`."""

    code = "missing_extra"

    @classmethod
    def of(cls, extra: str | None, what: str, modules: Sequence[str]) -> Self:
        """The error with the install command: for an extra, or for the plain package if `extra` is None."""
        package = "pendula" if extra is None else f'"pendula[{extra}]"'
        message = f"{what} needs {' and '.join(modules)}; install with: pip install {package}"
        return cls(message, extra=extra, modules=list(modules))


class NotCanonical(InputRefused):
    """Facts: `path` of the value without a canonical form."""

    code = "not_canonical"


def in_words(trouble: BaseException) -> str:
    """The `repr` of an exception as encodable text; its class name if `repr` fails.

    The `repr` of an exception from user code may raise anything or contain lone surrogates.
    """
    try:
        return repr(trouble).encode(errors="backslashreplace").decode()
    except BaseException:
        return type(trouble).__name__
