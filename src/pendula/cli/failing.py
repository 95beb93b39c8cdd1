"""Errors of commands: an exit code with one meaning, and one line or, with `--json`, one JSON object on stderr.

Closed standard streams do not change the exit code. This module imports neither typer nor rich, since it reports if
they are missing. `PENDULA_DEBUG=1` adds the traceback.
"""

import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from importlib.util import find_spec
from typing import Any, TextIO

from pendula.cli.text import printable, speak_plainly
from pendula.kernel.errors import MissingExtra, PendulaError, WorldBroken, WrongUsage

INTERRUPTED = 130
READER_GONE = 141
# The same for every command; the reference page has this table.
MEANINGS: Mapping[int, str] = {
    0: "Done. The result is on stdout, even if it contains refusals.",
    1: "Refused. The input is invalid: a file has faults, a request is refused, a check or a replay found a problem, "
    "or an expectation failed.",
    2: "The command line is wrong: an unknown command, option or name, or options that exclude each other.",
    3: "The command could not run: a file, journal, store, port, server or extra is missing or does not work, or "
    "Pendula has a bug (`internal_error`).",
    INTERRUPTED: "Ctrl+C. The line on stderr says what was kept.",
    READER_GONE: "The reader of the output closed the pipe, as `head` does.",
}

# Modules that commands need. A plain installation includes the first two; an installation without dependencies, to
# embed a scheduler, does not.
PLAIN: Mapping[str, tuple[str, ...]] = {
    "cli": ("typer", "rich"),
    "server": ("fastapi", "uvicorn", "prometheus_client", "structlog"),
}
EXTRAS: Mapping[str, tuple[str, ...]] = {"fleet": ("numpy", "shapely")}


class InternalError(PendulaError):
    """A bug in Pendula. Facts: `exception`, the class name."""

    code = "internal_error"
    exit_code = 3


class Interrupted(PendulaError):
    """The user pressed Ctrl+C. The message says what was kept."""

    code = "interrupted"
    exit_code = INTERRUPTED


# What remains after an interrupt at this point; a process runs one command.
_kept: list[str] = []


def keeping(sentence: str) -> None:
    """Set what an interrupt reports as kept from now on; before the first call nothing is."""
    _kept.append(sentence)


def require(part: str) -> None:
    """Raise `MissingExtra` unless all modules for this part of Pendula are installed; imports nothing."""
    absent = [module for module in {**PLAIN, **EXTRAS}[part] if find_spec(module) is None]
    if absent:
        raise MissingExtra.of(part if part in EXTRAS else None, "This", absent)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` is among the options, even if the rest of the line is wrong."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def ending(arguments: Sequence[str], work: Callable[[], int]) -> int:
    """Run `work` and return its exit code; errors are reported on stderr and determine the exit code."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        speak_plainly(stream)
    _kept.clear()
    try:
        code = work()
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        kept = "; ".join(_kept) or "nothing was written"
        report(Interrupted(f"Interrupted: {kept}"), wants_json(arguments))
        _drain(sys.stdout)
        return INTERRUPTED
    except BrokenPipeError:
        _drain(sys.stdout)
        return READER_GONE
    except SystemExit as leaving:
        # Rich, which renders the help, exits with 1 if the reader closes the pipe.
        if isinstance(leaving.__context__, BrokenPipeError):
            return READER_GONE
        raise
    except Exception as error:
        failure = understood(error)
        if failure is not error:
            failure.__cause__ = error
        report(failure, wants_json(arguments))
        _drain(sys.stdout)
        return failure.exit_code


def understood(error: Exception) -> PendulaError:
    """Convert an exception to an error with a code: a system error, a wrong command line, or a bug."""
    match error:
        case PendulaError():
            return error
        case OSError():
            return _refused_by_the_system(error)
        case _ if callable(getattr(error, "format_message", None)):
            return _wrong_command_line(error)
        case _:
            return InternalError(
                f"Internal error: {type(error).__name__}: {error}; PENDULA_DEBUG=1 shows the traceback",
                exception=type(error).__name__,
            )


def report(error: PendulaError, as_json: bool) -> None:
    """Write the error to stderr: one line (one more per fault of a document), or one JSON object."""
    if os.environ.get("PENDULA_DEBUG") == "1":
        traceback.print_exception(error.__cause__ or error)
    if as_json:
        from pendula.kernel.canonical import encode

        form = {"error": {"code": error.code, "message": error.message, "details": error.details}}
        sys.stderr.write(encode(_plain(form)).decode() + "\n")
    else:
        sys.stderr.write("\n".join(_lines(error)) + "\n")
    sys.stderr.flush()


def _open_closed_streams() -> None:
    """Replace closed standard streams by /dev/null, so that no opened file gets their descriptors and output."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _drain(stream: TextIO) -> None:
    """Flush the buffer; if that fails, discard it, so that Python's exit does not report an error."""
    try:
        stream.flush()
    except OSError:
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _refused_by_the_system(error: OSError) -> WorldBroken:
    reason = error.strerror or str(error) or type(error).__name__
    if error.filename is None:
        return WorldBroken(reason, errno=error.errno)
    path = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else str(error.filename)
    return WorldBroken(f"{path}: {reason}", errno=error.errno, path=path)


def _wrong_command_line(error: Any) -> WrongUsage:
    # A group without a command has printed its help and has no message.
    message = " ".join(str(error.format_message()).split()).replace("Value error, ", "") or "Missing command"
    context = getattr(error, "ctx", None)
    if context is None:
        return WrongUsage(message)
    return WrongUsage(f"{message.rstrip('.')}; see {context.command_path} --help", command=context.command_path)


def _lines(error: PendulaError) -> list[str]:
    render = getattr(error, "render", None)
    if callable(render):
        # One line per fault, `file:line:column: …`, in the form that editors understand.
        return [printable(line) for line in render().split("\n")]
    return [f"pendula: {printable(error.message)} ({error.code})"]


def _plain(value: Any) -> Any:
    """The facts of an error as encodable values, so that reporting never fails."""
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case Decimal() if value.is_finite():
            return value
        case str():
            return value.encode("utf-8", "backslashreplace").decode()
        case _ if hasattr(value, "__struct_fields__"):
            return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        case Mapping():
            return {_plain(str(key)): _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return _plain(str(value))
