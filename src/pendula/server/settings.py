"""Server settings: flags, then `PENDULA_*` variables, then a TOML file, then defaults.

All unknown or invalid settings are reported together, each with its source, line and column, and what is allowed.
Values of unknown settings are never shown: they may be secrets under a misspelt name.
"""

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from pendula.documents import NOWHERE, Document, DocumentRefused, Place
from pendula.documents import Path as Steps
from pendula.documents.toml_text import read_toml
from pendula.kernel import limits
from pendula.kernel.limits import Limit
from pendula.kernel.wording import shown
from pendula.server.errors import InvalidSettings

PREFIX = "PENDULA_"
# Variables with our prefix that are not server settings: the file name, and those for programs and tests.
# The name of the setting in the simulator protocol.
ORIGINS_VARIABLE = "SIMULATOR_CSRF_ORIGIN_ALLOWLIST"
OTHER_VARIABLES = frozenset(
    {"PENDULA_CONFIG", "PENDULA_DEBUG", "PENDULA_LONG", "PENDULA_MQTT_PASSWORD", "PENDULA_STRICT", "PENDULA_TOKEN"}
)

# Channel names are file names and never begin with a hyphen.
CHANNEL = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
DEFAULT_PORTS = {"http": 80, "https": 443}
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*\.?\Z")
_ALLOWED_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?\Z")


class LogFormat(StrEnum):
    """`console` for reading, `json` with one object per line."""

    CONSOLE = "console"
    JSON = "json"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Settings(Struct, frozen=True):
    """All settings; `limits` contains only values that differ from their defaults.

    `allowed_origins`: origins of other pages that may call the server. `playback_folders`: folders of media files by
    channel name. `playback_mqtt`: the broker from which players receive new artwork, `mqtt://user@host:1883/prefix`.
    `jobs_database`: the database file of jobs, by default in the data directory; `jobs_settings`: the file with their
    parameters. `credit_engines`: addresses of payment services by name, and `credit_engine_tokens`: files with their
    tokens.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    data: str = "pendula-data"
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_proxy: bool = False
    demo: bool = False
    log_format: LogFormat = LogFormat.CONSOLE
    log_level: LogLevel = LogLevel.INFO
    limits: dict[str, int] = {}
    playback_folders: dict[str, str] = {}
    playback_mqtt: str | None = None
    playback_mqtt_password: str | None = None
    jobs_database: str | None = None
    jobs_settings: str | None = None
    credit_engines: dict[str, str] = {}
    credit_engine_tokens: dict[str, str] = {}

    def allowed(self, limit: Limit) -> int:
        """The effective value of `limit`."""
        return self.limits.get(limit.name, limit.default)

    @property
    def tls(self) -> bool:
        return self.tls_cert is not None

    @property
    def loopback(self) -> bool:
        """Whether only programs on this machine can reach the server."""
        return is_loopback(self.host)


class Setting(Struct, frozen=True):
    """One setting: its name, the function that reads its value, and what is allowed."""

    name: str
    read: Callable[[object], Any]
    allowed: str

    @property
    def variable(self) -> str:
        return PREFIX + self.name.replace(".", "_").upper()


class Fault(Struct, frozen=True):
    """An invalid setting; line and column are 0 if its source is not a file."""

    setting: str
    source: str
    problem: str
    allowed: str
    line: int = 0
    column: int = 0


class Source(Struct, frozen=True):
    """A source of settings: values by name, and in a file their places."""

    name: str
    values: Mapping[str, object]
    document: Document | None = None
    paths: Mapping[str, Steps] = {}

    def fault(self, setting: str, problem: str, allowed: str) -> Fault:
        place = NOWHERE if self.document is None else self.document.place(self.paths[setting])
        return _placed(setting, self.name, place, problem, allowed)


def _placed(setting: str, source: str, place: Place, problem: str, allowed: str) -> Fault:
    where = f"{source}:{place.line}:{place.column}" if place.line else source
    return Fault(setting, where, problem, allowed, place.line, place.column)


def is_loopback(host: str) -> bool:
    """Whether `host` is reachable only from this machine; names other than localhost may resolve to any address."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def load(flags: Mapping[str, object], environ: Mapping[str, str]) -> Settings:
    """The effective settings; raises `InvalidSettings` with every fault. A flag of None was not given.

    `flags` are keyed by setting name (`host`, `limits.body_bytes`, …); `config` names the TOML file.
    """
    faults: list[Fault] = []
    config = flags.get("config") or environ.get(PREFIX + "CONFIG")
    given = {name: value for name, value in flags.items() if value is not None and name != "config"}
    sources = (
        *([] if config is None else [_file(str(config), faults)]),
        Source("environment", _environment(environ, faults)),
        Source("flag", given),
    )
    values: dict[str, Any] = {}
    for source in sources:
        values.update(_read(source, faults))
    settings = _settled(values)
    faults.extend(_contradictions(settings))
    if faults:
        raise _refusal(faults)
    return settings


def _refusal(faults: list[Fault]) -> InvalidSettings:
    problems = "; ".join(
        f"{fault.setting} ({fault.source}): {fault.problem}, allowed: {fault.allowed}" for fault in faults
    )
    return InvalidSettings(f"Invalid settings: {problems}", faults=faults)


def _settled(values: Mapping[str, Any]) -> Settings:
    numbers = {name.removeprefix("limits."): value for name, value in values.items() if name.startswith("limits.")}
    others = {name.replace(".", "_"): value for name, value in values.items() if not name.startswith("limits.")}
    return Settings(**others, limits=numbers)


def _file(config: str, faults: list[Fault]) -> Source:
    name = f"file {config}"
    try:
        document = read_toml(Path(config))
    except DocumentRefused as refused:
        for one in refused.faults:
            allowed = "a TOML file that can be read" if one.code == "document_unreadable" else "TOML in UTF-8"
            faults.append(_placed("config", name, Place(one.line, one.column), one.message, allowed))
        return Source(name, {})
    found = list(_flat(document.value))
    values = {".".join(steps): value for steps, value in found}
    return Source(name, values, document, {".".join(steps): steps for steps, _ in found})


def _flat(document: Any) -> Iterator[tuple[tuple[str, ...], object]]:
    """Settings with their paths: at the top of the file, or in a section."""
    for name, value in document.items():
        if isinstance(value, dict):
            yield from (((name, member), inner) for member, inner in value.items())
        else:
            yield (name,), value


def _environment(environ: Mapping[str, str], faults: list[Fault]) -> dict[str, object]:
    names = {setting.variable: setting.name for setting in SETTINGS}
    found: dict[str, object] = {}
    if environ.get(ORIGINS_VARIABLE, "").strip():
        found["allowed_origins"] = environ[ORIGINS_VARIABLE]
    for variable in sorted(environ):
        if not variable.startswith(PREFIX) or variable in OTHER_VARIABLES:
            continue
        if variable in names:
            found[names[variable]] = environ[variable]
        else:
            faults.append(Fault(variable, "environment", "unknown setting", ", ".join(sorted(names))))
    return found


def _read(source: Source, faults: list[Fault]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in source.values.items():
        setting = BY_NAME.get(name)
        if setting is None:
            faults.append(source.fault(name, "unknown setting", ", ".join(sorted(BY_NAME))))
            continue
        try:
            values[name] = setting.read(value)
        except ValueError:
            what = "the value" if name in SECRET else shown(value)
            faults.append(source.fault(name, f"{what} is invalid", setting.allowed))
    return values


def _contradictions(settings: Settings) -> Iterator[Fault]:
    for name in sorted(settings.credit_engine_tokens.keys() - settings.credit_engines.keys()):
        allowed = ", ".join(sorted(settings.credit_engines)) or "none, since no payment service is configured"
        yield Fault("credit.engine_tokens", "all sources", f"unknown payment service {name!r}", allowed)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        missing = "tls_key" if settings.tls_key is None else "tls_cert"
        yield Fault(missing, "all sources", "it is missing", "tls_cert and tls_key together, or neither")


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


def _hosts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(_allowed_host(entry) for entry in value)


def _allowed_host(value: object) -> str:
    match = _ALLOWED_HOST.match(_text(value))
    if match is None:
        raise ValueError
    name = _host(match["name"])
    shown = f"[{name}]" if ":" in name else name
    return shown if match["port"] is None else f"{shown}:{_whole(match['port'], 1, 65535)}"


def _origins(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(_origin(entry) for entry in value)


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


# Values that are not shown, because they may contain a password.
SECRET = frozenset({"credit.engines", "playback.mqtt", "playback.mqtt_password"})

# Bounds of the formats, the same in every program; bodies have separate limits.
FIXED = frozenset(
    limit.name for limit in (limits.DOCUMENT_BYTES, limits.DOCUMENT_NODES, limits.INTEGER_DIGITS, limits.RECORD_BYTES)
)


def _limit_setting(limit: Limit) -> Setting:
    least = 0 if limit is limits.MIN_FREE_BYTES else 1
    allowed = f"a whole number of {limit.unit} from {least}; the default is {limit.default}"
    return Setting(f"limits.{limit.name}", lambda value: _whole(value, least, 10**18), allowed)


SETTINGS: tuple[Setting, ...] = (
    Setting("host", _host, "a host name or an IP address"),
    Setting("port", lambda value: _whole(value, 0, 65535), "a whole number from 0 to 65535; 0 takes any free port"),
    Setting("data", lambda value: _text(str(value) if isinstance(value, Path) else value), "a directory"),
    Setting("allowed_hosts", _hosts, "host names or addresses, each with an optional :port"),
    Setting("allowed_origins", _origins, "origins of pages, as http://localhost:5173"),
    Setting("tls_cert", _text, "a file with the certificate chain in PEM"),
    Setting("tls_key", _text, "a file with the private key in PEM"),
    Setting("behind_proxy", _flag, "true or false"),
    Setting("demo", _flag, "true or false"),
    Setting("log_format", lambda value: LogFormat(_text(value)), "console or json"),
    Setting("playback.folders", _folders, "folders of media files by the name of their channel, [a-z0-9-]{1,64}"),
    Setting("playback.mqtt", _broker, "a URL such as mqtt://user@broker:1883/prefix, or mqtts:// for TLS"),
    Setting("playback.mqtt_password", _text, "the broker password, if it is not part of playback.mqtt"),
    Setting("jobs.database", _text, "an SQLite file; without it, one in the data directory"),
    Setting("jobs.settings", _text, "a file with the parameters of jobs"),
    Setting("credit.engines", _engines, "addresses of payment services by name, as http://127.0.0.1:9000"),
    Setting("credit.engine_tokens", _folders, "files with tokens by the name of the payment service"),
    Setting("log_level", lambda value: LogLevel(_text(value)), "debug, info, warning or error"),
    *(_limit_setting(limit) for limit in limits.ALL if limit.name not in FIXED),
)
BY_NAME: dict[str, Setting] = {setting.name: setting for setting in SETTINGS}
