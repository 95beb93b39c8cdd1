"""The server: every scheduler over HTTP, live, with the control room.

serving           the process: lock the data, bind, serve, stop
backup            a checked copy of a data directory while it is served
app               the application factory
schedulers/       the routes and views of each scheduler
api/              routes shared by schedulers: engines, front, OpenAPI, what a route takes from a request
runtime/          engines with their threads, clocks and streams, under one supervisor
http/             middleware, connections, the page
security/         gates, tokens, sessions, roles
monitoring        logging and Prometheus metrics
views, errors     the JSON of responses and errors
settings          flags, environment, TOML file, defaults
data_directory    the locked data directory; makes and removes engines in it

To serve your own scheduler you need `serve`, `load_settings`, `Settings` and `SchedulerSpec`. They are loaded on first
use, so that a command such as `pendula token` does not import the HTTP stack.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pendula.demo import Demo
    from pendula.server.runtime.scheduler_spec import SchedulerSpec
    from pendula.server.serving import serve
    from pendula.server.settings import Settings
    from pendula.server.settings import load as load_settings

__all__ = ["Demo", "SchedulerSpec", "Settings", "load_settings", "serve"]

_HOMES = {
    "Demo": "runtime.scheduler_spec:Demo",
    "SchedulerSpec": "runtime.scheduler_spec:SchedulerSpec",
    "Settings": "settings:Settings",
    "load_settings": "settings:load",
    "serve": "serving:serve",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, member = _HOMES[name].partition(":")
    return getattr(import_module(f"{__name__}.{module}"), member)
