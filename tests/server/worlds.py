"""A small world for the server tests: create it, send commands, read its state."""

import copy
from typing import Any

import httpx
import msgspec

from pendula.server.schedulers.actions.routes import SCHEDULER

BASE = "/api/v1/actions"
HOUSE = f"{BASE}/house"

# One workshop, two mechanics: the second waits until the first is done at 08:50.
DOCUMENT: dict[str, Any] = {
    "epoch": {"index": 0, "start_at": "2025-07-01T00:00:00", "end_at": "2025-07-02T00:00:00"},
    "action_defs": {
        "repair": {
            "base_duration_min": 50,
            "effort": "medium",
            "interruptible": True,
            "locks": ["workshop"],
            "resources": [{"name": "parts", "amount": 1}],
        },
        "write": {"base_duration_min": 60, "effort": "medium", "interruptible": True, "resume": "manual"},
        "watch": {"base_duration_min": 480, "effort": "medium", "interruptible": False, "may_trigger_event": True},
    },
    "resources": {"parts": 3},
    "options": {"pc": "ann"},
    "actions_submitted": [
        {"id": "A1", "actor": "ann", "verb": "repair", "submitted_at": "2025-07-01T08:00:00"},
        {"id": "A2", "actor": "bob", "verb": "repair", "submitted_at": "2025-07-01T08:05:00"},
        {"id": "A3", "actor": "bob", "verb": "fly", "submitted_at": "2025-07-01T08:10:00"},
    ],
}
# The scheduler without its demo: only a test advances time.
STILL = msgspec.structs.replace(SCHEDULER, demo=None)


async def make(client: httpx.AsyncClient, name: str = "house", **changes: Any) -> httpx.Response:
    return await client.post(BASE, params={"name": name}, json={**copy.deepcopy(DOCUMENT), **changes})


async def ask(client: httpx.AsyncClient, what: str, **body: Any) -> Any:
    response = await client.post(f"{HOUSE}/{what}", json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def view(client: httpx.AsyncClient, what: str, **query: Any) -> Any:
    response = await client.get(f"{HOUSE}/{what}", params=query)
    assert response.status_code == 200, response.text
    return response.json()


def gist(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(event["type"], event["action_id"], event["t"]) for event in events]
