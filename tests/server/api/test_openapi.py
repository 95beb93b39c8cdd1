"""The OpenAPI document matches the server: every generated request is answered as documented."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from pendula.server.app import create_app
from pendula.server.schedulers import schedulers_for
from pendula.server.settings import Settings
from tests.server.living import BASE, LiveServer

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


# Real requests on a real socket: a few of each, and more of them with the long ones.
EXAMPLES = settings(max_examples=settings().max_examples // 33, suppress_health_check=list(HealthCheck))


def test_every_generated_request_is_answered_as_documented(live: LiveServer) -> None:
    # Streams never end; their own tests read them.
    schema = schemathesis.openapi.from_url(f"{live.url}/openapi.json").exclude(path_regex="/stream$")
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]

    for operation in operations:

        @EXAMPLES
        @given(case=operation.as_strategy())
        def answered_as_documented(case: "schemathesis.Case[Any]") -> None:
            case.call_and_validate(checks=CHECKS)

        answered_as_documented()
    assert len(operations) == 15


@pytest.mark.parametrize("path", ["/state", "/journal"])
def test_record_numbers_beyond_any_journal_are_answered_as_documented(live: LiveServer, path: str) -> None:
    with live.client() as client:
        for number in (0, 1, 2**31, 2**63 - 1, 2**63, 10**400):
            response = client.get(f"{BASE}{path}", params={"at": number, "start": number})

            assert response.status_code in (200, 422), number


def test_the_document_is_openapi_3_1_and_names_every_shape(live: LiveServer) -> None:
    with live.client() as client:
        document = client.get("/openapi.json").json()

    assert document["openapi"].startswith("3.1")
    shapes = document["components"]["schemas"]
    assert {"TallyCommand", "StateView", "JournalView", "ErrorView", "Reason"} <= set(shapes)
    assert _references(document) <= {f"#/components/schemas/{name}" for name in shapes}
    assert {
        "/healthz",
        "/readyz",
        "/metrics",
        "/api/v1/schedulers",
        "/api/v1/session",
        "/api/v1/stream",
        "/api/v1/tally/{engine}/state",
        "/api/v1/tally/{engine}/choices",
        "/api/v1/tally/{engine}/journal",
        "/api/v1/tally/{engine}/moments",
        "/api/v1/tally/{engine}/moment",
        "/api/v1/tally/{engine}/incident",
        "/api/v1/tally/{engine}/commands",
        "/api/v1/tally/{engine}/why",
        "/api/v1/tally/{engine}/stream",
    } == set(document["paths"])


def test_the_document_describes_exact_numbers_as_they_are_sent() -> None:
    served = Settings()
    shapes = create_app(served, schedulers_for(served)).openapi()["components"]["schemas"]

    assert shapes["FaultBody"]["properties"]["dxM"] == {"type": "number"}
    assert shapes["AnchorBody"]["properties"]["sM"] == {"type": "number", "minimum": 0, "maximum": 100_000}
    assert "'decimal'" not in str(shapes)


def test_the_document_needs_no_external_resource(live: LiveServer) -> None:
    assert httpx.get(f"{live.url}/redoc", trust_env=False, timeout=120).status_code == 404
    # Our own documentation of the API, if the page is built: no script, no external resource.
    assert "<script" not in httpx.get(f"{live.url}/docs", trust_env=False, timeout=120).text


def _references(value: object) -> set[str]:
    match value:
        case dict():
            own = {value["$ref"]} if isinstance(value.get("$ref"), str) else set()
            return own.union(*map(_references, value.values()))
        case list():
            return set().union(*map(_references, value))
        case _:
            return set()
