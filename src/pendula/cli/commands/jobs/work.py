"""The long-running commands: serve and worker."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec.structs import asdict

from pendula.cli.commands.jobs.target import Target, command, members
from pendula.cli.failing import require
from pendula.cli.output import facts
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.jobs.client import RemoteScheduler
    from pendula.jobs.scheduler import Scheduler
    from pendula.jobs.settings_file import Configured
    from pendula.jobs.worker.heartbeats import Tally
    from pendula.jobs.worker.worker import Worker


HandlersOption = Annotated[
    list[str] | None,
    typer.Option(metavar="MODULE", help="Module with handlers: package.module; may be repeated.", show_default=False),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--worker", metavar="NAME", help="Its name in lists and logs.", show_default="host, process id, random letters"
    ),
]
MaxJobsOption = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Stop after this many jobs.", show_default="never")
]
IntervalOption = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", min=0.05, max=3600, help="Time between two polls.", show_default="5"),
]
FixedOption = Annotated[
    bool, typer.Option("--fixed-interval", help="Poll only at the interval; do not wake up when a job is due.")
]
LeaseOption = Annotated[
    int | None, typer.Option(metavar="SECONDS", help="The length of leases.", show_default="as the settings say")
]
GraceOption = Annotated[
    int,
    typer.Option(metavar="SECONDS", min=0, max=86_400, help="Time for running handlers to finish after a stop."),
]
TypesOption = Annotated[
    list[str] | None, typer.Option(metavar="TYPE", help="Only these; may be repeated.", show_default=False)
]
ActionsOption = Annotated[
    list[str] | None, typer.Option(metavar="ACTION", help="Only these; may be repeated.", show_default=False)
]
QueuesOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Only these; may be repeated.", show_default=False)
]


InitOption = Annotated[bool, typer.Option("--init", help="Create the store if it does not exist.")]


def register(jobs: typer.Typer) -> None:
    at = "--db sqlite:///jobs.db"
    command(jobs, "serve", f"pendula jobs serve {at}", f"pendula jobs serve --port 0 {at} --json", local=True)(serve)
    command(
        jobs,
        "worker",
        f"pendula jobs worker --handlers my_project.upkeep {at}",
        "pendula jobs worker --handlers my_project.upkeep --concurrency 8 --url http://127.0.0.1:8765",
        f"pendula jobs worker --handlers my_project.upkeep --once {at} --json",
        f"pendula jobs worker --handlers my_project.verifiers --govern {at}",
    )(worker)


def serve(
    target: Target,
    host: Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")] = None,
    port: Annotated[int | None, typer.Option(help="Port; 0 takes any free one.", show_default="8765")] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where tokens are kept.", show_default="pendula-data")
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", help="Another allowed host name; may be repeated.", show_default=False),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate chain in PEM.", show_default=False)
    ] = None,
    tls_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Private key in PEM.", show_default=False)
    ] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option("--behind-proxy", help="A proxy in front handles TLS; trust its headers about the caller."),
    ] = False,
    init: InitOption = False,
) -> None:
    """Serve only the scheduler, at /scheduler, by default on 127.0.0.1.

    It also sends alerts, enqueues recurring jobs and deletes finished jobs older than the retention setting. Other
    processes may use the same store. Listening on another address needs an access token (see pendula token) and TLS, or
    a proxy. Ctrl+C stops it cleanly.
    """
    require("server")
    from pendula.jobs.addresses import TOKEN_VARIABLE
    from pendula.server.schedulers.jobs.routes import scheduler_for
    from pendula.server.serving import serve as run
    from pendula.server.settings import load

    with _mention_init(target, init), target.store(make=init, patient=True):
        # Report errors of the store before the server starts.
        path = target.path()
    flags: dict[str, object] = {
        "host": host,
        "port": port,
        "data": data,
        "allowed_hosts": allowed_host or None,
        "tls_cert": None if tls_cert is None else str(tls_cert),
        "tls_key": None if tls_key is None else str(tls_key),
        "behind_proxy": behind_proxy or None,
        "log_format": "json" if target.out.as_json else None,
        "jobs.database": str(path.absolute()),
        "jobs.settings": None if target.config is None else str(target.config.absolute()),
    }
    # The variable with the token is for clients, not a setting of the server.
    settings = load(flags, {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE})

    def ready(address: str) -> None:
        document = {"address": address, "data": settings.data, "file": str(path)}
        target.out.result(document, lambda: f"The scheduler is at {address}/scheduler (Ctrl+C stops it)")

    run(settings, schedulers=(scheduler_for(settings),), on_ready=ready)


def worker(
    target: Target,
    handlers: HandlersOption = None,
    govern: Annotated[
        bool, typer.Option("--govern", help="Settle decay and archive jobs of governed objects.")
    ] = False,
    worker_id: NameOption = None,
    concurrency: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="Handlers that run at a time.")] = 1,
    batch: Annotated[int, typer.Option(metavar="N", min=0, max=10_000, help="Further jobs held in advance.")] = 0,
    once: Annotated[bool, typer.Option("--once", help="Stop after one round.")] = False,
    max_jobs: MaxJobsOption = None,
    interval: IntervalOption = None,
    fixed: FixedOption = False,
    lease_sec: LeaseOption = None,
    grace: GraceOption = 30,
    object_type: TypesOption = None,
    action: ActionsOption = None,
    queue: QueuesOption = None,
    init: InitOption = False,
) -> None:
    """Run a worker: pull due jobs, run their handlers and report the results, until Ctrl+C or a limit.

    Ctrl+C or SIGTERM lets running handlers finish; a second one exits at once. The exit code is 0 even if jobs fail.
    With --db the worker also sends alerts and enqueues recurring jobs: use the same --config for all workers on one
    store.
    """
    from pendula.jobs.worker.handlers import load
    from pendula.jobs.worker.worker import Worker

    configured = target.configured()
    seconds = float(configured.worker_interval_sec) if interval is None else interval
    given = members(worker_id=worker_id, lease_sec=lease_sec, max_jobs=max_jobs, interval_sec=seconds)
    if not handlers and not govern:
        raise WrongUsage("pass --handlers package.module, or --govern for governed objects")
    if init and target.url is not None:
        raise WrongUsage("--init is for --db; a server has its own store")
    with (
        _mention_init(target, init),
        target.scheduler(make=init, patient=True) as scheduler,
        _current_directory_importable(),
        _log(),
        _background_services(scheduler, configured),
    ):
        made = Worker(
            scheduler,
            load(handlers or ()),
            govern=govern,
            concurrency=concurrency,
            batch=batch,
            once=once,
            wake_up=not fixed,
            grace_sec=grace,
            object_types=object_type or (),
            actions=action or (),
            queues=queue or (),
            **given,
        )
        tally = _run(target, made, until_stopped=not once and max_jobs is None)
    document: dict[str, Any] = {"worker_id": made.worker_id, **asdict(tally)}
    target.out.result(document, lambda: facts([(name, str(value)) for name, value in document.items()]))


def _run(target: Target, worker: "Worker", *, until_stopped: bool) -> "Tally":
    if until_stopped:
        target.out.note(f"{worker.worker_id} is running (Ctrl+C stops it)")
    return worker.run(signals=True)


@contextmanager
def _mention_init(target: Target, init: bool) -> Iterator[None]:
    """Mention `--init` if the store does not exist."""
    from pendula.jobs.store.sqlite_files import NoStore

    try:
        yield
    except NoStore as missing:
        if not init and not target.path().exists():
            missing.message += ", or add --init"
        raise


def _background_services(
    scheduler: "Scheduler | RemoteScheduler", configured: "Configured"
) -> AbstractContextManager[None]:
    """Background services of a worker on a store; a server has its own."""
    from pendula.jobs.scheduler import Scheduler
    from pendula.jobs.upkeep.background_services import in_background

    return in_background(scheduler, configured) if isinstance(scheduler, Scheduler) else nullcontext()


@contextmanager
def _current_directory_importable() -> Iterator[None]:
    """Import handlers from the current directory, too, as `python -m` does."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    finally:
        sys.path.remove(here)


@contextmanager
def _log() -> Iterator[None]:
    """Log of the worker to stderr."""
    log = logging.getLogger("pendula.jobs")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("pendula: %(message)s"))
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
