"""Every route names the role it needs, and enforces it."""

import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts

from pendula.server.api.requests import Needs
from pendula.server.app import create_app
from pendula.server.schedulers import schedulers_for
from pendula.server.security.gates import is_public
from pendula.server.security.identity import LOCAL_OPERATOR, Role, TokenStore
from pendula.server.settings import Settings
from tests.server.living import BASE, TALLY, client_of, code_of, running

pytestmark = pytest.mark.anyio
CALLS = [
    ("GET", "/api/v1/schedulers", Role.VIEWER),
    ("GET", "/metrics", Role.VIEWER),
    ("GET", f"{BASE}/state", Role.VIEWER),
    ("GET", f"{BASE}/journal", Role.VIEWER),
    ("POST", f"{BASE}/why", Role.VIEWER),
    ("POST", f"{BASE}/commands", Role.OPERATOR),
]


def test_every_route_is_public_or_names_a_role(settings: Settings) -> None:
    app = create_app(settings, [TALLY, *schedulers_for(settings)])

    routes = [found for found in map(_endpoint, iter_route_contexts(app.routes)) if found is not None]

    assert [path for path, named in routes if not named and not is_public(path)] == []
    assert {f"{BASE.replace('main', '{engine}')}/commands", "/api/v1/playback/{player}/close"} <= set(dict(routes))


@pytest.mark.parametrize(("method", "path", "needed"), CALLS)
async def test_a_role_below_the_needed_one_is_refused(settings: Settings, method: str, path: str, needed: Role) -> None:
    store = TokenStore(settings.data)
    secrets = {role: store.new(f"the-{role}", role)[1] for role in Role}
    body = {"question": {"take": 1}} if path.endswith("why") else {"type": "add", "amount": 1}
    async with running(settings) as app, client_of(app) as client:
        for role, secret in secrets.items():
            response = await client.request(
                method, path, json=body if method == "POST" else None, headers={"authorization": f"Bearer {secret}"}
            )

            if role.covers(needed):
                assert response.status_code == 200
            else:
                assert (response.status_code, code_of(response)) == (403, "role_too_low")


def test_admin_always_needs_a_token() -> None:
    assert not LOCAL_OPERATOR.role.covers(Role.ADMIN)


def _endpoint(context: RouteContext) -> tuple[str, bool] | None:
    """The path of a route, and whether it names a role; None for other endpoints."""
    route = context.original_route
    if not isinstance(route, APIRoute):
        return None
    return route.path, _names_a_role(route.dependant)


def _names_a_role(dependant: Dependant) -> bool:
    """Whether the route or one of its dependencies requires a role."""
    return any(isinstance(needed.call, Needs) or _names_a_role(needed) for needed in dependant.dependencies)
