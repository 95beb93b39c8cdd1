"""The server: every scheduler over HTTP, live, with the control room.

serving           the process: lock the data, bind, serve, stop
backup            a checked copy of a data directory while it is served
app               the factory of the application
schedulers/            the schedulers, each with its routes and views, by name
routes/           what schedulers share: engines, their lifecycle, the front, OpenAPI, FastAPI dependencies
hosting/          what a scheduler is; engines and their threads, clocks and streams, under one supervisor
http/             middleware around every request, the connection below, the page
security/         gates, tokens, sessions, roles
logs, metrics     what operators read
views, errors     the JSON of answers, and of what is refused
settings          flags, environment, TOML file, defaults
data_directory    the locked data directory
memory            what is free goes back to the system

`serve`, `load_settings`, `Settings` and `SchedulerSpec` are all that it takes to serve a scheduler of one's own. They
are loaded when they are asked for: a command that only makes a token does not wait for an HTTP stack.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pendula.server.hosting.scheduler_spec import Demo, SchedulerSpec
    from pendula.server.serving import serve
    from pendula.server.settings import Settings
    from pendula.server.settings import load as load_settings

__all__ = ["Demo", "SchedulerSpec", "Settings", "load_settings", "serve"]

_HOMES = {
    "Demo": "hosting.scheduler_spec:Demo",
    "SchedulerSpec": "hosting.scheduler_spec:SchedulerSpec",
    "Settings": "settings:Settings",
    "load_settings": "settings:load",
    "serve": "serving:serve",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, member = _HOMES[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), member)
