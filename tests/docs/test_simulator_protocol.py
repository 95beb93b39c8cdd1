"""The page of the simulator's protocol says what the server does: every path, every setting, every key of a picture."""

import re

from fastapi.routing import APIRoute, iter_route_contexts

from pendula.credit.views import ALPHAS, PALETTE
from pendula.server.app import create_app
from pendula.server.schedulers.credit.errors import PREFIX
from pendula.server.schedulers.credit.scheduler import scheduler_for
from pendula.server.schedulers.credit.settings import TABLE, ServedSettings
from pendula.server.settings import Settings
from tests.docs.markdown import ROOT

PAGE = (ROOT / "docs/reference/simulator-protocol.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    part = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_path_is_on_the_page_and_every_path_of_the_page_is_served() -> None:
    settings = Settings()
    app = create_app(settings, (scheduler_for(settings, {}),))
    routes = [context.original_route for context in iter_route_contexts(app.routes)]
    served = {
        (method, route.path.removeprefix(PREFIX))
        for route in routes
        if isinstance(route, APIRoute) and route.path.startswith(PREFIX)
        for method in route.methods or ()
    }

    told = {(row[0], path) for row in rows("Paths") for path in re.findall(r"`(/[^`]*)`", row[1])}

    assert told == served


def test_every_setting_is_on_the_page_with_its_default() -> None:
    told = {row[0].strip("`"): row[1] for row in rows("Settings")}
    defaults = ServedSettings()
    for setting in TABLE:
        value = getattr(defaults, setting.name)
        shown = ("on" if value else "off") if isinstance(value, bool) else str(value)
        assert told.pop(setting.variable) == shown

    assert set(told) == {"SIMULATOR_SCENARIO_ALLOWLIST", "SIMULATOR_CSRF_ORIGIN_ALLOWLIST"}


def test_every_key_of_a_picture_is_on_the_page() -> None:
    text = PAGE.split("\n## Display keys\n")[1].split("\n## ")[0]
    plain = [key for key in PALETTE if not key.startswith("debt-")] + [key for _, key in ALPHAS]

    assert [key for key in plain if f"`{key}`" not in text] == []
    assert "`debt-0` to `debt-8`" in text
    assert sum(key.startswith("debt-") for key in PALETTE) == 9
