"""Settings of a process that serves runs, beside those of runs: limits, retention, intervals.

Read from the same environment and validated the same way.
"""

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Struct

from pendula.credit.settings import NUMBER_MOST, Setting, given_values, table_of

_REAL = "SIMULATOR_REAL_"
_BARE = ""
_ANY = -NUMBER_MOST  # zero and below switch it off


class ServedSettings(Struct, frozen=True):
    """Times in milliseconds, seconds, hours or days, as their names say."""

    heartbeat_ms: Annotated[int, Setting("wall-clock time between two heartbeats", least=1)] = 1000
    pace_ms: Annotated[
        int | None, Setting("wall-clock time between two ticks; the heartbeat's if not given", least=1)
    ] = None
    max_active_runs: Annotated[int, Setting("active runs of the process; 0 means no limit", least=_ANY)] = 1
    max_active_runs_per_owner: Annotated[int, Setting("active runs of an owner; 0 means no limit", least=_ANY)] = 1
    max_run_records: Annotated[int, Setting("records of ended runs kept in memory", least=1, most=100_000)] = 200
    event_buffer_size: Annotated[int, Setting("events kept for readers that come back", least=1, most=10**6)] = 2000
    event_buffer_ttl_sec: Annotated[int, Setting("seconds for which they are kept", least=1)] = 600
    sse_sub_queue_max: Annotated[int, Setting("events a reader may leave unread", least=1, most=10**6)] = (
        2001  # all kept events and a status, so that the whole buffer can be replayed
    )
    sse_max_connections: Annotated[int, Setting("streams of the process; 0 means no limit", least=_ANY)] = 50
    sse_max_connections_per_run: Annotated[int, Setting("streams of a run; 0 means no limit", least=_ANY)] = 10
    run_persist_every_ms: Annotated[int, Setting("between two writes of an unchanged record", least=1)] = 5000
    run_persist_dirty_every_ms: Annotated[int, Setting("between two writes of a changed record", least=1)] = 1000
    metrics_every_n_ticks: Annotated[
        int, Setting("ticks between two writes of metrics", variable="SIMULATOR_REAL_DB_METRICS_EVERY_N_TICKS", least=1)
    ] = 5
    bottlenecks_every_n_ticks: Annotated[
        int,
        Setting(
            "ticks between two writes of bottlenecks", variable="SIMULATOR_REAL_DB_BOTTLENECKS_EVERY_N_TICKS", least=1
        ),
    ] = 10
    last_tick_write_every_ms: Annotated[int, Setting("refresh of last_tick.json; 0 is off", _REAL, least=_ANY)] = 500
    artifacts_sync_every_ms: Annotated[
        int, Setting("refresh of the artifact index; 0 is at the end", _REAL, least=_ANY)
    ] = 5000
    artifacts_ttl_hours: Annotated[int, Setting("age at which artifacts are removed; 0 is never")] = 0
    artifact_sha_max_bytes: Annotated[int, Setting("largest artifact that is hashed")] = 524_288
    run_retention_days: Annotated[int, Setting("age at which ended runs are removed", least=7, most=30)] = 30
    session_ttl_sec: Annotated[int, Setting("life of an owner's cookie", least=1)] = 604_800
    session_clock_skew_sec: Annotated[int, Setting("how far in the future a cookie may come from")] = 300
    db_enabled: Annotated[bool, Setting("persistent store")] = True
    metrics_enabled: Annotated[bool, Setting("counters for Prometheus", _BARE)] = True
    scenario_allowlist: tuple[str, ...] | None = None

    @property
    def tick_period_ms(self) -> int:
        """The wall-clock time between two ticks: that of the heartbeat unless it is given."""
        return self.heartbeat_ms if self.pace_ms is None else self.pace_ms


TABLE = table_of(ServedSettings)
ALLOWLIST = "SIMULATOR_SCENARIO_ALLOWLIST"


def from_environment(environment: Mapping[str, str]) -> ServedSettings:
    """The settings of a process; missing and empty variables take their defaults. Raises `InvalidSetting`."""
    values = given_values(TABLE, environment)
    names = _list(environment.get(ALLOWLIST, ""))
    if names and not {"all", "*"} & set(names):
        values["scenario_allowlist"] = names
    return msgspec.structs.replace(ServedSettings(), **values)


def _list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())
