"""The options that all commands of `pendula jobs` share (`--db`, `--url`, settings, output), and access to the store.

Only `init` and `--init` create a store. Every other command reports in one line what is wrong with the file.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from inspect import Parameter, Signature, signature
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, get_args

import typer
from msgspec import Struct

from pendula.cli.failing import keeping
from pendula.cli.output import JsonFlag, Output, example
from pendula.kernel.errors import WrongUsage
from pendula.kernel.wallclock import SLOWER, SelfCheckingClock

if TYPE_CHECKING:
    from pendula.jobs.calls import Calls
    from pendula.jobs.client import RemoteScheduler
    from pendula.jobs.scheduler import Scheduler
    from pendula.jobs.settings_file import Configured
    from pendula.jobs.store.sqlite import SqliteStore

P = ParamSpec("P")

DATABASE_VARIABLE = "PENDULA_JOBS_DATABASE"
SETTINGS_VARIABLE = "PENDULA_JOBS_SETTINGS"
AHEAD_SEC = 60  # a note is printed if the time of the store is further ahead

DbOption = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The store: sqlite:///jobs.db, sqlite:////srv/jobs.db, or a path.",
        show_default=f"the variable {DATABASE_VARIABLE}",
    ),
]
UrlOption = Annotated[
    str | None, typer.Option(metavar="URL", help="A running server: http://127.0.0.1:8765.", show_default=False)
]
TokenFileOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The access token for --url.", show_default="the variable PENDULA_TOKEN"),
]
CaOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Trusted certificates for --url, in PEM.", show_default="those of the system"),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Settings for --db: TOML, YAML or JSON.",
        show_default=f"the variable {SETTINGS_VARIABLE}",
    ),
]
COMMON: Mapping[str, tuple[Any, Any]] = {
    "db": (DbOption, None),
    "url": (UrlOption, None),
    "token_file": (TokenFileOption, None),
    "ca": (CaOption, None),
    "config": (ConfigOption, None),
    "json": (JsonFlag, False),
}


REMOTE = frozenset({"url", "token_file", "ca"})


class Options(Struct, frozen=True):
    """Options that several commands share: a parameter annotated with them expands to all and gets what `make` returns.

    `named` are their annotations and defaults, in the order of the help.
    """

    named: Mapping[str, tuple[Any, Any]]
    make: Callable[..., Any]

    def parameters(self) -> list[Parameter]:
        return [
            Parameter(option, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for option, (annotation, default) in self.named.items()
        ]


class Target(Struct, frozen=True):
    """The shared options of one command, and access to the store or server."""

    db: str | None
    url: str | None
    token_file: Path | None
    ca: Path | None
    config: Path | None
    out: Output

    @contextmanager
    def scheduler(self, *, make: bool = False, patient: bool = False) -> "Iterator[Scheduler | RemoteScheduler]":
        """The scheduler of the store or the server; both have the same calls. `make` creates a missing store."""
        from pendula.jobs.addresses import token_from
        from pendula.jobs.client import CallRefused, RemoteScheduler
        from pendula.jobs.messages import JobRefused
        from pendula.jobs.scheduler import Scheduler

        self._check(remote=True)
        try:
            if self.url is None:
                with self.calls(make=make, patient=patient) as calls:
                    yield Scheduler(calls, caller())
            else:
                with RemoteScheduler(self.url, token_from(self.token_file), ca=self.ca) as remote:
                    yield remote
        except CallRefused as refused:
            if refused.code == "unauthenticated" and token_from(self.token_file) is None:
                refused.message = "The server needs an access token: pass --token-file or set PENDULA_TOKEN"
            raise
        except JobRefused as refused:
            if not self.out.as_json:
                refused.message = str(refused)
            raise

    def send(self, call: str, given: Mapping[str, Any], *path: str) -> dict[str, Any]:
        """Make one call; the reply as plain JSON."""
        with self.scheduler() as scheduler:
            return sent(scheduler, call, given, *path)

    @contextmanager
    def calls(self, *, make: bool = False, patient: bool = False) -> "Iterator[Calls]":
        from pendula.jobs.calls import Calls
        from pendula.jobs.scheduler import hold_clock

        configured = self.configured()
        with self.store(configured, make=make, patient=patient) as store:
            machine = clock()
            hold_clock(store, configured.policy, machine)
            yield Calls(store, configured.policy, machine)

    @contextmanager
    def store(
        self, configured: "Configured | None" = None, *, make: bool = False, patient: bool = False
    ) -> "Iterator[SqliteStore]":
        """The store of `--db`; `make` creates a missing one.

        With `patient` a migration waits as long as another process writes, and logs that now and then.
        """
        from pendula.jobs.store.file.opening import PATIENCE_SECONDS
        from pendula.jobs.store.sqlite_files import opened

        self._check(remote=False)
        policy = (configured or self.configured()).policy
        seconds = inf if patient else PATIENCE_SECONDS
        with opened(self.path(), policy.durability, make=make, patience_seconds=seconds) as store:
            yield store

    def note_time(self, store: object) -> None:
        """Print a note if the time of the store is more than a minute ahead of this machine's clock."""
        from pendula.jobs.model import SECOND
        from pendula.jobs.store.sqlite import SqliteStore

        ahead = store.ahead_of(clock()) // SECOND if isinstance(store, SqliteStore) else 0
        if ahead > AHEAD_SEC:
            self.out.note(
                f"The time of the store is {ahead} s ahead of this machine's clock, which was put back. Time never "
                f"goes back: it goes at half its speed, until both agree in {SLOWER * ahead} s at the latest."
            )

    def configured(self) -> "Configured":
        from pendula.jobs.settings_file import Configured, load

        return Configured() if self.config is None else load(self.config)

    def require_store(self) -> None:
        """Raise `WrongUsage` unless `--db` was given: a server does not offer this."""
        self._check(remote=False)

    def path(self) -> Path:
        """The file of `--db`."""
        from pendula.jobs.store.sqlite_files import sqlite_path

        assert self.db is not None
        return sqlite_path(self.db)

    def _check(self, *, remote: bool) -> None:
        if self.db is not None and self.url is not None:
            raise WrongUsage("pass --db for a store or --url for a server, not both")
        if self.url is not None and not remote:
            raise WrongUsage("This command needs the store itself: pass --db on the machine with the file")
        if self.db is None and self.url is None:
            raise WrongUsage("pass --db sqlite:///jobs.db" + (" or --url http://127.0.0.1:8765" if remote else ""))
        if self.config is not None and self.url is not None:
            raise WrongUsage("--config is for --db; a server has its own settings")
        if self.token_file is not None and self.db is not None:
            raise WrongUsage("--token-file is for --url; a store needs no token")
        if self.ca is not None and (self.url is None or not self.url.lower().startswith("https:")):
            raise WrongUsage("--ca is for a --url with https")


def sent(scheduler: "Scheduler | RemoteScheduler", call: str, given: Mapping[str, Any], *path: str) -> dict[str, Any]:
    """Make a call by its name; the reply as plain JSON."""
    from pendula.jobs.messages import CALL_NAMED, plain

    named = CALL_NAMED[call]
    for text in path:
        members(**{"plan" if "{name}" in named.path else "job": text})
    return plain(scheduler.send(named, given, *path))


def clock() -> Callable[[], int]:
    """The clock of this machine, in microseconds since 1970."""
    return SelfCheckingClock().now


def wall_now() -> int:
    return clock()()


def command(
    group: typer.Typer, name: str, *examples: str, local: bool = False
) -> Callable[[Callable[Concatenate[Target, P], None]], None]:
    """Register a command with its own and the shared options; a `local` one needs a store, not a server."""

    def register(work: Callable[Concatenate[Target, P], None]) -> None:
        group.command(name, epilog=example(*examples))(with_target(work, local=local))

    return register


def with_target(work: Callable[..., None], *, local: bool = False) -> Callable[..., None]:
    """The function for typer: the options of `work`, with the shared options in place of its target."""
    own = list(signature(work, eval_str=True).parameters.values())[1:]
    groups = {parameter.name: group for parameter in own if (group := _options(parameter)) is not None}

    def run(**given: Any) -> None:
        shared = {option: given.pop(option) for option in COMMON}
        out = Output(shared.pop("json"))
        for name, group in groups.items():
            given[name] = group.make(**{option: given.pop(option) for option in group.named})
        keeping("what the store has acknowledged stays, and nothing else was changed")
        work(Target(**_with_variables(shared), out=out), **given)

    common = [
        Parameter(
            option,
            Parameter.KEYWORD_ONLY,
            default=default,
            annotation=_hidden(annotation) if local and option in REMOTE else annotation,
        )
        for option, (annotation, default) in COMMON.items()
    ]
    spread = (groups[entry.name].parameters() if entry.name in groups else [entry] for entry in own)
    parameters = [*(entry.replace(kind=Parameter.KEYWORD_ONLY) for part in spread for entry in part), *common]
    run.__doc__ = work.__doc__
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _options(parameter: Parameter) -> Options | None:
    """The shared options of an annotated parameter, if it has any."""
    return next((extra for extra in get_args(parameter.annotation) if isinstance(extra, Options)), None)


def _hidden(annotation: Any) -> Any:
    """The option without help, so that using it gives an error about `--db`."""
    kind, option = get_args(annotation)
    hidden = copy(option)
    hidden.hidden = True
    return Annotated[kind, hidden]


def _with_variables(given: dict[str, Any], environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Fill in store and settings from the environment variables, if neither store nor server is given."""
    db, config = environ.get(DATABASE_VARIABLE) or None, environ.get(SETTINGS_VARIABLE) or None
    if given["db"] is None and given["url"] is None:
        given["db"] = db
    if given["db"] is not None and given["url"] is None and given["config"] is None and config is not None:
        given["config"] = Path(config)
    return given


def members(**given: Any) -> dict[str, Any]:
    """The given options. Raises `WrongUsage` for text that is not valid UTF-8, which a store cannot keep."""
    present = {name: value for name, value in given.items() if value is not None}
    for name, value in present.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and any("\ud800" <= char <= "\udfff" for char in text):
                raise WrongUsage(f"{name.replace('_', '-')} is not UTF-8 text", name=name)
    return present


def tables() -> Any:
    """Replies as tables; imported lazily, since it loads rich."""
    from pendula.cli.commands.jobs import tables as drawn

    return drawn


def caller() -> Any:
    """The user of this terminal, for the audit trail."""
    from pendula.jobs.calls import Caller
    from pendula.jobs.model import Actor

    return Caller(Actor("user", _user()))


def _user() -> str:
    from pwd import getpwuid

    try:
        return getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
