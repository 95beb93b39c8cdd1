"""How a command fails: an exit code with one meaning, and one line on stderr or, with `--json`, one JSON object there.

A stream that was closed before we began takes whatever is said, and the exit code stays what it is. Knows neither typer
nor rich: it also has to say that they are missing. `PENDULA_DEBUG=1` adds the traceback.
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
# One meaning each, for every command; the reference page has this table.
MEANINGS: Mapping[int, str] = {
    0: "Done. The result is on stdout, even where it tells of refusals within it.",
    1: "Refused. What was given does not hold up: a file has faults, a request is refused, a check or a replay found "
    "something, an expectation did not come true.",
    2: "The command line is wrong: a word, an option or a name that does not exist, or two that do not go together.",
    3: "It could not be tried: something is not there or does not work (a file, a journal, a store, a port, a server, "
    "a missing extra), or Pendula itself has a defect (`internal_error`).",
    INTERRUPTED: "Ctrl+C. The line on stderr says what was kept.",
    READER_GONE: "The program that read our output went away, as `head` does.",
}

# What commands need beside the libraries. A plain installation brings the first two; who installs without
# dependencies, to embed a scheduler, goes without.
PLAIN: Mapping[str, tuple[str, ...]] = {
    "cli": ("typer", "rich"),
    "server": ("fastapi", "uvicorn", "prometheus_client", "structlog"),
}
EXTRAS: Mapping[str, tuple[str, ...]] = {"fleet": ("numpy", "shapely")}


class InternalError(PendulaError):
    """A defect of Pendula. Facts: `exception`, the name of its class."""

    code = "internal_error"
    exit_code = 3


class Interrupted(PendulaError):
    """Somebody pressed Ctrl+C. The message says what was kept."""

    code = "interrupted"
    exit_code = INTERRUPTED


# What an interrupt leaves behind, as far as the command has come; one command runs in a process.
_kept: list[str] = []


def keeping(sentence: str) -> None:
    """From here on an interrupt leaves this behind; it is said then. Before the first call nothing is."""
    _kept.append(sentence)


def require(part: str) -> None:
    """Raise `MissingExtra` unless everything that this part of Pendula needs can be imported; imports nothing."""
    absent = [module for module in {**PLAIN, **EXTRAS}[part] if find_spec(module) is None]
    if absent:
        raise MissingExtra.of(part if part in EXTRAS else None, "This", absent)


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether `--json` is among the options, also when the rest of the line makes no sense."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def ending(arguments: Sequence[str], work: Callable[[], int]) -> int:
    """The exit code of `work`; whatever stops it is told on stderr and becomes the exit code."""
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
        # Rich, which draws the help, makes an exit with 1 of a reader who goes away.
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
    """The same failure as an error with a code: what the system refused, a wrong command line, or a defect."""
    match error:
        case PendulaError():
            return error
        case OSError():
            return _refused_by_the_system(error)
        case _ if callable(getattr(error, "format_message", None)):
            return _wrong_command_line(error)
        case _:
            return InternalError(
                f"Pendula has a defect: {type(error).__name__}: {error}; PENDULA_DEBUG=1 shows where",
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
    """Put nowhere in the place of closed streams, lest the next file we open get their numbers and what others say."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def _drain(stream: TextIO) -> None:
    """Write what is still buffered; if it cannot be written, let it go, so that Python's exit does not complain."""
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
    # A group without a command has printed its help and says nothing more.
    message = " ".join(str(error.format_message()).split()).replace("Value error, ", "") or "Missing command"
    context = getattr(error, "ctx", None)
    if context is None:
        return WrongUsage(message)
    return WrongUsage(f"{message.rstrip('.')}; see {context.command_path} --help", command=context.command_path)


def _lines(error: PendulaError) -> list[str]:
    render = getattr(error, "render", None)
    if callable(render):
        # A refused document has a line for each fault, `file:line:column: …`, as editors understand it.
        return [printable(line) for line in render().split("\n")]
    return [f"pendula: {printable(error.message)} ({error.code})"]


def _plain(value: Any) -> Any:
    """A value that has canonical bytes, whatever facts an error carries: an error must never fail to be told."""
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
