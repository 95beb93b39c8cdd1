"""The scheduler `credit` of a server, under the paths of its protocol: `/api/v1/simulator/…`."""

import os
from collections.abc import Mapping

from pendula.credit import settings as run_settings
from pendula.server.runtime.scheduler_spec import SchedulerSpec
from pendula.server.schedulers.credit import settings as served_settings
from pendula.server.schedulers.credit.errors import PREFIX, SimulatorErrors
from pendula.server.schedulers.credit.routes import actions, networks, runs, streams
from pendula.server.schedulers.credit.routes.caller import NAME
from pendula.server.schedulers.credit.service import SimulatorService
from pendula.server.settings import Settings


def scheduler_for(settings: Settings, environment: Mapping[str, str] | None = None) -> SchedulerSpec:
    """The scheduler with the settings of the environment; raises `InvalidSetting`."""
    variables = os.environ if environment is None else environment
    served, defaults = served_settings.from_environment(variables), run_settings.from_environment(variables)
    if settings.demo:
        # The demo shows manual actions, too.
        defaults = run_settings.change_settings(defaults, {"actions_enable": "on"})
    return SchedulerSpec(
        name=NAME,
        title="Credit",
        sentence="Simulates credit networks: who can pay whom, where capacity runs out, what clearing frees.",
        routers=(
            networks.router,
            streams.router,
            actions.router,
            runs.router,
        ),
        service=lambda host: SimulatorService(host, served, defaults),
        errors=lambda _: SimulatorErrors(),
        prefix=PREFIX,
    )
