"""Structured logs on stderr, and Prometheus metrics.

A log line is one event, with the request id and without tokens or cookies. Tokens are removed everywhere, including
messages of libraries and tracebacks; query strings are not logged. Terminal control characters are escaped, since paths
and errors can contain text of callers.

Metrics are requests, commands, flushes, streams and gaps, in a registry per app. Labels are route patterns, methods,
statuses, schedulers and engines: few values, no secrets.
"""

import json
import logging
import sys
from collections.abc import Mapping, MutableMapping
from typing import IO, Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from structlog.typing import EventDict, Processor

from pendula.server.security.identity import SECRET_PATTERN
from pendula.server.settings import LogFormat, LogLevel

SECRET_NAMES = frozenset({"authorization", "cookie", "set-cookie", "secret", "token", "password"})
REMOVED = "[removed]"
TRACEBACKS = frozenset({"exception", "stack"})


def without_secrets(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """The event with secrets removed at any depth."""
    return _clean_members(event)


def _clean_members(members: Mapping[str, Any]) -> MutableMapping[str, Any]:
    return {name: REMOVED if str(name).lower() in SECRET_NAMES else _clean(value) for name, value in members.items()}


def _clean(value: Any) -> Any:
    match value:
        case str():
            return SECRET_PATTERN.sub(REMOVED, value)
        case Mapping():
            return _clean_members(value)
        case list() | tuple():
            return [_clean(member) for member in value]
        case _:
            return value


def without_commands(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """The event with terminal control characters escaped; tracebacks keep their lines."""
    return {name: _escaped(str(name), value) for name, value in event.items()}


def _escaped(name: str, value: Any) -> Any:
    if not isinstance(value, str) or value.isprintable():
        return value
    kept = "\n\t" if name in TRACEBACKS else ""
    return "".join(
        char if char.isprintable() or char in kept else char.encode("unicode_escape").decode() for char in value
    )


def configure(form: LogFormat, level: LogLevel, out: IO[str] | None = None) -> None:
    """Send the logs of Pendula and its libraries to `out` (stderr) in one format."""
    stream = sys.stderr if out is None else out
    before: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*before, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    last: list[Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        without_secrets,
        *([_render_json] if form is LogFormat.JSON else [without_commands, _console(stream)]),
    ]
    handler = logging.StreamHandler(stream)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=before, processors=last))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        library = logging.getLogger(name)
        library.handlers[:] = []
        library.propagate = True
    # Its messages at this level (process ids, "waiting for background tasks") duplicate ours.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _console(stream: IO[str]) -> Processor:
    return structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=structlog.dev.plain_traceback)


_as_json = structlog.processors.JSONRenderer(ensure_ascii=False, sort_keys=True)


def _render_json(logger: Any, method: str, event: EventDict) -> str:
    """One line of JSON. JSON escapes only below U+0020; U+009B, U+202E and U+2028 are control characters too."""
    line = str(_as_json(logger, method, event))
    if line.isprintable():
        return line
    # JSON syntax is printable, so every other character is inside a string and can be escaped.
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in line)


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
ENGINE = ("scheduler", "engine")


class Metrics:
    """The counters of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        here = self.registry
        route = ("route", "method")
        self._requests = Counter("pendula_requests", "Requests answered", (*route, "status"), registry=here)
        self._seconds = Histogram("pendula_request_seconds", "Seconds until answered", route, registry=here)
        self.commands = Counter("pendula_commands", "Commands applied", (*ENGINE, "result"), registry=here)
        self.flushes = Counter("pendula_flushes", "Journal flushes", ENGINE, registry=here)
        self.waiting = Gauge("pendula_waiting_commands", "Commands waiting for their flush", ENGINE, registry=here)
        self.streams = Gauge("pendula_streams_open", "Event streams open", registry=here)
        self.body_bytes = Gauge("pendula_body_bytes", "Bytes of large bodies held", registry=here)
        self.gaps = Counter("pendula_stream_gaps", "Gaps sent to slow readers", ENGINE, registry=here)
        self.engines_broken = Gauge("pendula_engine_broken", "1 if the engine refuses commands", ENGINE, registry=here)

    def answered(self, route: str, method: str, status: int | None, seconds: float) -> None:
        """Count a finished request; `status` is None if the client disconnected first."""
        known = method if method in METHODS else "other"
        self._requests.labels(route, known, "none" if status is None else str(status)).inc()
        self._seconds.labels(route, known).observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """All metrics in Prometheus text format, with the content type."""
        return generate_latest(self.registry), CONTENT_TYPE_PLAIN_0_0_4
