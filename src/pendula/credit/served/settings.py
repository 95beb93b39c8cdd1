"""Settings of a process that serves runs, beside those of runs: limits, retention, intervals.

Read from the same environment and validated the same way.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from pendula.credit.settings import NUMBER_MOST, Kind, Setting, parse_setting

_S = "SIMULATOR_"
_R = "SIMULATOR_REAL_"
_ANY = -NUMBER_MOST  # zero and below switch it off


class ServedSettings(Struct, frozen=True):
    """Times in milliseconds, seconds, hours or days, as their names say."""

    heartbeat_ms: int = 1000
    pace_ms: int | None = None
    max_active_runs: int = 1
    max_active_runs_per_owner: int = 1
    max_run_records: int = 200
    event_buffer_size: int = 2000
    event_buffer_ttl_sec: int = 600
    sse_sub_queue_max: int = 2001  # all kept events and a status, so that the whole buffer can be replayed
    sse_max_connections: int = 50
    sse_max_connections_per_run: int = 10
    run_persist_every_ms: int = 5000
    run_persist_dirty_every_ms: int = 1000
    metrics_every_n_ticks: int = 5
    bottlenecks_every_n_ticks: int = 10
    last_tick_write_every_ms: int = 500
    artifacts_sync_every_ms: int = 5000
    artifacts_ttl_hours: int = 0
    artifact_sha_max_bytes: int = 524_288
    run_retention_days: int = 30
    session_ttl_sec: int = 604_800
    session_clock_skew_sec: int = 300
    db_enabled: bool = True
    metrics_enabled: bool = True
    scenario_allowlist: tuple[str, ...] | None = None

    @property
    def tick_period_ms(self) -> int:
        """The wall-clock time between two ticks: that of the heartbeat unless it is given."""
        return self.heartbeat_ms if self.pace_ms is None else self.pace_ms


TABLE: tuple[Setting, ...] = (
    Setting("heartbeat_ms", _S + "HEARTBEAT_MS", "wall-clock time between two heartbeats", least=1),
    Setting("pace_ms", _S + "PACE_MS", "wall-clock time between two ticks; the heartbeat's if not given", least=1),
    Setting("max_active_runs", _S + "MAX_ACTIVE_RUNS", "active runs of the process; 0 means no limit", least=_ANY),
    Setting(
        "max_active_runs_per_owner",
        _S + "MAX_ACTIVE_RUNS_PER_OWNER",
        "active runs of an owner; 0 means no limit",
        least=_ANY,
    ),
    Setting("max_run_records", _S + "MAX_RUN_RECORDS", "records of ended runs kept in memory", least=1, most=100_000),
    Setting(
        "event_buffer_size", _S + "EVENT_BUFFER_SIZE", "events kept for readers that come back", least=1, most=10**6
    ),
    Setting("event_buffer_ttl_sec", _S + "EVENT_BUFFER_TTL_SEC", "seconds for which they are kept", least=1),
    Setting("sse_sub_queue_max", _S + "SSE_SUB_QUEUE_MAX", "events a reader may leave unread", least=1, most=10**6),
    Setting("sse_max_connections", _S + "SSE_MAX_CONNECTIONS", "streams of the process; 0 means no limit", least=_ANY),
    Setting(
        "sse_max_connections_per_run",
        _S + "SSE_MAX_CONNECTIONS_PER_RUN",
        "streams of a run; 0 means no limit",
        least=_ANY,
    ),
    Setting("run_persist_every_ms", _S + "RUN_PERSIST_EVERY_MS", "between two writes of an unchanged record", least=1),
    Setting(
        "run_persist_dirty_every_ms",
        _S + "RUN_PERSIST_DIRTY_EVERY_MS",
        "between two writes of a changed record",
        least=1,
    ),
    Setting("metrics_every_n_ticks", _R + "DB_METRICS_EVERY_N_TICKS", "ticks between two writes of metrics", least=1),
    Setting(
        "bottlenecks_every_n_ticks",
        _R + "DB_BOTTLENECKS_EVERY_N_TICKS",
        "ticks between two writes of bottlenecks",
        least=1,
    ),
    Setting(
        "last_tick_write_every_ms", _R + "LAST_TICK_WRITE_EVERY_MS", "refresh of last_tick.json; 0 is off", least=_ANY
    ),
    Setting(
        "artifacts_sync_every_ms",
        _R + "ARTIFACTS_SYNC_EVERY_MS",
        "refresh of the artifact index; 0 is at the end",
        least=_ANY,
    ),
    Setting("artifacts_ttl_hours", _S + "ARTIFACTS_TTL_HOURS", "age at which artifacts are removed; 0 is never"),
    Setting("artifact_sha_max_bytes", _S + "ARTIFACT_SHA_MAX_BYTES", "largest artifact that is hashed"),
    Setting("run_retention_days", _S + "RUN_RETENTION_DAYS", "age at which ended runs are removed", least=7, most=30),
    Setting("session_ttl_sec", _S + "SESSION_TTL_SEC", "life of an owner's cookie", least=1),
    Setting("session_clock_skew_sec", _S + "SESSION_CLOCK_SKEW_SEC", "how far in the future a cookie may come from"),
    Setting("db_enabled", _S + "DB_ENABLED", "persistent store", Kind.SWITCH),
    Setting("metrics_enabled", "METRICS_ENABLED", "counters for Prometheus", Kind.SWITCH),
)
ALLOWLIST = _S + "SCENARIO_ALLOWLIST"


def from_environment(environment: Mapping[str, str]) -> ServedSettings:
    """The settings of a process; missing and empty variables take their defaults. Raises `InvalidSetting`."""
    values = {
        setting.name: parse_setting(setting, environment[setting.variable].strip())
        for setting in TABLE
        if environment.get(setting.variable, "").strip()
    }
    names = _list(environment.get(ALLOWLIST, ""))
    if names and not {"all", "*"} & set(names):
        values["scenario_allowlist"] = names
    return msgspec.structs.replace(ServedSettings(), **values)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
