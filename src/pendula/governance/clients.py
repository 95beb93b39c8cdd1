"""`governed(client)`: governed objects of a store, of a server, or awaited; the same methods, replies and errors."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self, overload

from pendula.governance.objects import Governance, GovernedObjects
from pendula.jobs.async_scheduler import AsyncScheduler
from pendula.jobs.client import RemoteScheduler, known_job, segment
from pendula.jobs.scheduler import Scheduler

Reply = dict[str, Any]


@overload
def governed(client: Scheduler) -> GovernedObjects: ...
@overload
def governed(client: RemoteScheduler) -> "RemoteObjects": ...
@overload
def governed(client: AsyncScheduler) -> "AsyncObjects": ...
def governed(
    client: Scheduler | RemoteScheduler | AsyncScheduler,
) -> "GovernedObjects | RemoteObjects | AsyncObjects":
    """Governed objects: state machines, gates, budgets, evidence."""
    match client:
        case Scheduler():
            return GovernedObjects(Governance(client.calls), client.caller)
        case RemoteScheduler():
            return RemoteObjects(client)
        case AsyncScheduler():
            return AsyncObjects(governed(client.blocking), client.made)


class RemoteObjects:
    """Governed objects over HTTP. A refused call raises `JobRefused`; nothing was changed."""

    def __init__(self, client: RemoteScheduler, user: str | None = None) -> None:
        self._client = client
        self._user = user

    def as_user(self, name: str) -> Self:
        """The same calls as a named person. A server with tokens uses the name of the token instead."""
        return type(self)(self._client, name)

    def create(self, object_type: str, object_id: str, **members: Any) -> Reply:
        return self._posted("/objects", {"object_type": object_type, "object_id": object_id, **members})

    def show(self, object_type: str, object_id: str) -> Reply:
        return self._client.get(_about("show", object_type, object_id))

    def why(self, object_type: str, object_id: str) -> Reply:
        return self._client.get(_about("why", object_type, object_id))

    def list(self, object_type: str, **query: Any) -> Reply:
        return self._client.get("/objects", {"object_type": object_type, **query})

    def attach_evidence(self, object_type: str, object_id: str, *refs: str, **members: Any) -> Reply:
        return self._posted(_about("evidence", object_type, object_id), {"evidence_refs": list(refs), **members})

    def decide(self, object_type: str, object_id: str, action: str, finding: str, **members: Any) -> Reply:
        body = {"action": action, "finding": finding, **members}
        return self._posted(_about("decide", object_type, object_id), body)

    def amend(self, object_type: str, object_id: str, reason: str, **members: Any) -> Reply:
        return self._posted(_about("amend", object_type, object_id), {"reason": reason, **members})

    def refill(self, object_type: str, object_id: str, reason: str, **members: Any) -> Reply:
        return self._posted(_about("refill", object_type, object_id), {"reason": reason, **members})

    def rollback_finished(self, object_type: str, object_id: str, **members: Any) -> Reply:
        return self._posted(_about("rollback-finished", object_type, object_id), members)

    def rollbacks(self, **query: Any) -> Reply:
        return self._client.get("/rollbacks", query)

    def set_gate(self, gate: str, verdict: str, reason: str, **members: Any) -> Reply:
        body = {"gate": gate, "verdict": verdict, "reason": reason, **members}
        return self._client.post("/gates", body, method="PUT", user=self._user)

    def gates(self, **query: Any) -> Reply:
        return self._client.get("/gates", query)

    def machines(self) -> Reply:
        return self._client.get("/machines")

    def figures(self) -> Reply:
        return self._client.get("/governance")

    def begin(self, job_id: str, **proof: Any) -> Reply:
        return self._posted(f"/jobs/{known_job(job_id)}/begin", proof)

    def finish(self, job_id: str, **members: Any) -> Reply:
        return self._posted(f"/jobs/{known_job(job_id)}/finish", members)

    def settle(self, job_id: str, **proof: Any) -> Reply:
        return self._posted(f"/jobs/{known_job(job_id)}/settle", proof)

    def _posted(self, path: str, members: Mapping[str, Any]) -> Reply:
        return self._client.post(path, members, user=self._user)


def _about(verb: str, object_type: str, object_id: str) -> str:
    return f"/objects/{verb}/{segment(object_type)}/{segment(object_id)}"


class AsyncObjects:
    """Governed objects of a store or a server, awaited; the calls are those of `GovernedObjects`."""

    def __init__(self, blocking: GovernedObjects | RemoteObjects, made: Callable[..., Awaitable[Reply]]) -> None:
        self.blocking = blocking
        self._made = made

    def as_user(self, name: str) -> "AsyncObjects":
        """The same calls as a named person, who is recorded in the trail."""
        return AsyncObjects(self.blocking.as_user(name), self._made)

    async def create(self, object_type: str, object_id: str, **members: Any) -> Reply:
        return await self._made(self.blocking.create, object_type, object_id, **members)

    async def show(self, object_type: str, object_id: str) -> Reply:
        return await self._made(self.blocking.show, object_type, object_id)

    async def why(self, object_type: str, object_id: str) -> Reply:
        return await self._made(self.blocking.why, object_type, object_id)

    async def list(self, object_type: str, **query: Any) -> Reply:
        return await self._made(self.blocking.list, object_type, **query)

    async def attach_evidence(self, object_type: str, object_id: str, *refs: str, **members: Any) -> Reply:
        return await self._made(self.blocking.attach_evidence, object_type, object_id, *refs, **members)

    async def decide(self, object_type: str, object_id: str, action: str, finding: str, **members: Any) -> Reply:
        return await self._made(self.blocking.decide, object_type, object_id, action, finding, **members)

    async def amend(self, object_type: str, object_id: str, reason: str, **members: Any) -> Reply:
        return await self._made(self.blocking.amend, object_type, object_id, reason, **members)

    async def refill(self, object_type: str, object_id: str, reason: str, **members: Any) -> Reply:
        return await self._made(self.blocking.refill, object_type, object_id, reason, **members)

    async def rollback_finished(self, object_type: str, object_id: str, **members: Any) -> Reply:
        return await self._made(self.blocking.rollback_finished, object_type, object_id, **members)

    async def rollbacks(self, **query: Any) -> Reply:
        return await self._made(self.blocking.rollbacks, **query)

    async def set_gate(self, gate: str, verdict: str, reason: str, **members: Any) -> Reply:
        return await self._made(self.blocking.set_gate, gate, verdict, reason, **members)

    async def gates(self, **query: Any) -> Reply:
        return await self._made(self.blocking.gates, **query)

    async def machines(self) -> Reply:
        return await self._made(self.blocking.machines)

    async def figures(self) -> Reply:
        return await self._made(self.blocking.figures)

    async def begin(self, job_id: str, **proof: Any) -> Reply:
        return await self._made(self.blocking.begin, job_id, **proof)

    async def finish(self, job_id: str, **members: Any) -> Reply:
        return await self._made(self.blocking.finish, job_id, **members)

    async def settle(self, job_id: str, **proof: Any) -> Reply:
        return await self._made(self.blocking.settle, job_id, **proof)
