"""Server settings: flags, then `PENDULA_*` variables, then a TOML file, then defaults.

All unknown or invalid settings are reported together, each with its source, line and column, and what is allowed.
Values of unknown settings are never shown: they may be secrets under a misspelt name.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import fields, replace

from pendula.documents import Document, DocumentRefused, from_value
from pendula.documents import Fault as DocumentFault
from pendula.documents.cursor import Cursor
from pendula.documents.toml_text import read_toml
from pendula.documents.typed import MERGED, Read, read_at
from pendula.kernel import limits
from pendula.kernel.limits import Limit
from pendula.kernel.wording import shown, suggestion
from pendula.server.errors import InvalidSettings

PREFIX = "PENDULA_"
# The name of the setting in the simulator protocol.
ORIGINS_VARIABLE = "SIMULATOR_CSRF_ORIGIN_ALLOWLIST"
# Variables with our prefix that are not server settings: the file name, and those for programs and tests.
OTHER_VARIABLES = frozenset(
    {"PENDULA_CONFIG", "PENDULA_DEBUG", "PENDULA_LONG", "PENDULA_MQTT_PASSWORD", "PENDULA_STRICT", "PENDULA_TOKEN"}
)

# Channel names are file names and never begin with a hyphen.
CHANNEL = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.?\Z")
_ALLOWED_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?\Z")
# Bounds of the formats, the same in every program; bodies have separate limits.
FIXED = frozenset(
    limit.name for limit in (limits.DOCUMENT_BYTES, limits.DOCUMENT_NODES, limits.INTEGER_DIGITS, limits.RECORD_BYTES)
)


class LogFormat(StrEnum):
    """`console` for reading, `json` with one object per line."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Setting(Read):
    """Annotation of a setting: how text or a value of TOML is read, and what is allowed. `secret`: never shown."""

    def __init__(self, parse: Callable[[Any], Any], allowed: str, *, secret: bool = False) -> None:
        super().__init__(self._read)
        self.allowed = allowed
        self._parse = parse
        self._secret = secret

    def _read(self, at: Cursor) -> Any:
        try:
            return self._parse(at.any())
        except ValueError:
            at.refuse(f"{'the value' if self._secret else shown(at.any())} is invalid", allowed=(self.allowed,))
            return None


# Readers of single values


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise ValueError
    return value


def _host(value: object) -> str:
    text = _text(value)
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        if not _HOST_NAME.match(text):
            raise
        return text.lower()


def _whole(value: object, least: int, most: int) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        value = int(value)
    if type(value) is not int or not least <= value <= most:
        raise ValueError
    return value


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if value in ("true", "false"):
        return value == "true"
    raise ValueError


def _listed(value: object, read: Callable[[object], str]) -> tuple[str, ...]:
    """The entries of a list, or of text with commas."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(map(read, value))


def _allowed_host(value: object) -> str:
    match = _ALLOWED_HOST.match(_text(value))
    if match is None:
        raise ValueError
    name = _host(match["name"])
    shown = f"[{name}]" if ":" in name else name
    return shown if match["port"] is None else f"{shown}:{_whole(match['port'], 1, 65535)}"


def _origin(value: object) -> str:
    """An origin as browsers send it: scheme, host, and port unless it is the default."""
    scheme, there, host = _text(value).partition("://")
    if not there or scheme.lower() not in DEFAULT_PORTS:
        raise ValueError
    shown = _allowed_host(host.rstrip("/"))
    return f"{scheme.lower()}://{shown.removesuffix(f':{DEFAULT_PORTS[scheme.lower()]}')}"


def _folders(value: object) -> dict[str, str]:
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()]
        value = {name.strip(): path.strip() for name, _, path in pairs}
    if not isinstance(value, dict) or not all(isinstance(name, str) and CHANNEL.fullmatch(name) for name in value):
        raise ValueError
    return {name: _text(path) for name, path in value.items()}


def _broker(value: object) -> str:
    """A broker URL with a host, and a path that is the topic prefix."""
    text = _text(value)
    parts = urlsplit(text)
    port = parts.port  # raises ValueError if invalid
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname or not parts.path.strip("/") or port == 0:
        raise ValueError
    # Characters that no topic contains; part of a password after an unescaped / would end up here.
    if parts.query or parts.fragment or re.search(r"[+#@]|^/+\$", unquote(parts.path)):
        raise ValueError
    return text


def _engines(value: object) -> dict[str, str]:
    """Addresses without credentials; the part after the host is a path."""
    found = _folders(value)
    for url in found.values():
        scheme, there, rest = url.partition("://")
        if not there or scheme not in DEFAULT_PORTS or not rest or re.search(r"[@?#\s]", rest):
            raise ValueError
    return found


def _limit(limit: Limit) -> Setting:
    least = 0 if limit is limits.MIN_FREE_BYTES else 1
    allowed = f"a whole number of {limit.unit} from {least}; the default is {limit.default}"
    return Setting(lambda value: _whole(value, least, 10**18), allowed)


LIMITS: Mapping[str, Setting] = {limit.name: _limit(limit) for limit in limits.ALL if limit.name not in FIXED}


def _limit_name(at: Cursor) -> str:
    return str(at.one_of(sorted(LIMITS), noun="a limit"))


def _limit_value(at: Cursor) -> Any:
    setting = LIMITS.get(str(at.path[-1]))
    return None if setting is None else setting.read(at)


# The settings


class PlaybackSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`folders`: media files by channel name. `mqtt`: the broker from which players receive new artwork."""

    folders: Annotated[
        dict[str, str], Setting(_folders, "folders of media files by the name of their channel, [a-z0-9-]{1,64}")
    ] = {}
    mqtt: Annotated[
        str | None, Setting(_broker, "a URL such as mqtt://user@broker:1883/prefix, or mqtts:// for TLS", secret=True)
    ] = None
    mqtt_password: Annotated[
        str | None, Setting(_text, "the broker password, if it is not part of playback.mqtt", secret=True)
    ] = None


class JobsSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`database`: by default in the data directory. `settings`: the file with the parameters of jobs."""

    database: Annotated[str | None, Setting(_text, "an SQLite file; without it, one in the data directory")] = None
    settings: Annotated[str | None, Setting(_text, "a file with the parameters of jobs")] = None


class CreditSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Addresses of payment services by name, and files with their tokens."""

    engines: Annotated[
        dict[str, str],
        Setting(_engines, "addresses of payment services by name, as http://127.0.0.1:9000", secret=True),
    ] = {}
    engine_tokens: Annotated[
        dict[str, str], Setting(_folders, "files with tokens by the name of the payment service")
    ] = {}


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings; `limits` contains only values that differ from their defaults.

    `allowed_origins`: origins of other pages that may call the server.
    """

    host: Annotated[str, Setting(_host, "a host name or an IP address")] = "127.0.0.1"
    port: Annotated[
        int, Setting(lambda value: _whole(value, 0, 65535), "a whole number from 0 to 65535; 0 takes any free port")
    ] = 8765
    data: Annotated[
        str, Setting(lambda value: _text(str(value) if isinstance(value, Path) else value), "a directory")
    ] = "pendula-data"
    allowed_hosts: Annotated[
        tuple[str, ...],
        Setting(lambda value: _listed(value, _allowed_host), "host names or addresses, each with an optional :port"),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        Setting(lambda value: _listed(value, _origin), "origins of pages, as http://localhost:5173"),
    ] = ()
    tls_cert: Annotated[str | None, Setting(_text, "a file with the certificate chain in PEM")] = None
    tls_key: Annotated[str | None, Setting(_text, "a file with the private key in PEM")] = None
    behind_proxy: Annotated[bool, Setting(_flag, "true or false")] = False
    demo: Annotated[bool, Setting(_flag, "true or false")] = False
    log_format: Annotated[LogFormat, Setting(LogFormat, "console or json")] = LogFormat.CONSOLE
    log_level: Annotated[LogLevel, Setting(LogLevel, "debug, info, warning or error")] = LogLevel.INFO
    playback: PlaybackSettings = PlaybackSettings()
    jobs: JobsSettings = JobsSettings()
    credit: CreditSettings = CreditSettings()
    limits: Annotated[dict[Annotated[str, Read(_limit_name)], Annotated[int, Read(_limit_value)]], MERGED] = {}

    def allowed(self, limit: Limit) -> int:
        """The effective value of `limit`."""
        return self.limits.get(limit.name, limit.default)

    @property
    def tls(self) -> bool:
        return self.tls_cert is not None


def _named(form: type[Struct], section: str = "") -> Iterator[tuple[str, Setting]]:
    for info in fields(form):
        if isinstance(info.type, type) and issubclass(info.type, Struct):
            yield from _named(info.type, f"{info.name}.")
        for mark in get_args(info.type)[1:]:
            if isinstance(mark, Setting):
                yield section + info.name, mark


# Every setting by its name in the file, `playback.folders`.
SETTINGS: Mapping[str, Setting] = {**dict(_named(Settings)), **{f"limits.{name}": LIMITS[name] for name in LIMITS}}


def variable_of(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.replace(".", "_").upper()


class Fault(Struct, frozen=True):
    """An invalid setting; line and column are 0 if its source is not a file."""

    setting: str
    source: str
    problem: str
    allowed: str
    line: int = 0
    column: int = 0


def load(flags: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """The effective settings; raises `InvalidSettings` with every fault. A flag of None was not given.

    `flags` are keyed by setting name (`host`, `limits.body_bytes`, …); `config` names the TOML file.
    """
    faults: list[Fault] = []
    config = flags.get("config") or environ.get(PREFIX + "CONFIG")
    given = {name: value for name, value in flags.items() if value is not None and name != "config"}
    settings = Settings()
    for document in (
        *_file(config, faults),
        _sectioned(_environment(environ, faults), "environment"),
        _sectioned(given, "flag"),
    ):
        # A faulty value is None here; the other sources are checked nevertheless.
        settings = read_at(document.root(), Settings, present=settings)
        try:
            document.done()
        except DocumentRefused as refused:
            faults.extend(_fault(fault, document.source_name) for fault in refused.faults)
    faults.extend(_contradictions(settings))
    if faults:
        problems = "; ".join(
            f"{fault.setting} ({fault.source}): {fault.problem}, allowed: {fault.allowed}" for fault in faults
        )
        raise InvalidSettings(f"Invalid settings: {problems}", faults=faults)
    return settings


def _fault(fault: DocumentFault, source: str, setting: str | None = None) -> Fault:
    where = f"{source}:{fault.line}:{fault.column}" if fault.line else source
    name = fault.path.removeprefix("$.") if setting is None else setting
    return Fault(name, where, fault.message, ", ".join(fault.allowed), fault.line, fault.column)


def _file(config: object, faults: list[Fault]) -> Iterator[Document]:
    if config is None:
        return
    try:
        document = read_toml(Path(str(config)))
    except DocumentRefused as refused:
        for one in refused.faults:
            allowed = "a TOML file that can be read" if one.code == "document_unreadable" else "TOML in UTF-8"
            faults.append(_fault(replace(one, allowed=(allowed,)), f"file {config}", "config"))
    else:
        document.source_name = f"file {config}"
        yield document


def _sectioned(values: Mapping[str, Any], source: str) -> Document:
    """Settings by name as the document that a file would be."""
    sections: dict[str, Any] = {}
    for name, value in values.items():
        section, dot, member = name.partition(".")
        (sections.setdefault(section, {}) if dot else sections)[member or section] = value
    return from_value(sections, source)


def _environment(environ: Mapping[str, str], faults: list[Fault]) -> dict[str, object]:
    names = {variable_of(name): name for name in SETTINGS}
    found: dict[str, object] = {}
    if environ.get(ORIGINS_VARIABLE, "").strip():
        found["allowed_origins"] = environ[ORIGINS_VARIABLE]
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable in names:
            found[names[variable]] = environ[variable]
        else:
            problem = f"unknown setting{suggestion(variable, sorted(names))}"
            faults.append(Fault(variable, "environment", problem, ", ".join(sorted(names))))
    return found


def _contradictions(settings: Settings) -> Iterator[Fault]:
    engines, tokens = settings.credit.engines or {}, settings.credit.engine_tokens or {}
    for name in sorted(tokens.keys() - engines.keys()):
        allowed = ", ".join(sorted(engines)) or "none, since no payment service is configured"
        yield Fault("credit.engine_tokens", "all sources", f"unknown payment service {name!r}", allowed)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        missing = "tls_key" if settings.tls_key is None else "tls_cert"
        yield Fault(missing, "all sources", "it is missing", "tls_cert and tls_key together, or neither")
