"""`RemoteObjects`: governed objects of a server, with the methods, replies and errors of `GovernedObjects`."""

from collections.abc import Callable, Mapping
from re import compile as regex
from typing import Any, Protocol, Self
from urllib.parse import quote

from pendula.jobs.calls import not_found
from pendula.jobs.model import JobRefused

USER_HEADER = "X-Pendula-User"
_JOB_ID = regex(r"job_[0-9A-Za-z]{8,40}")

Reply = dict[str, Any]


class Posting(Protocol):
    def __call__(
        self, path: str, members: Mapping[str, Any], *, method: str = "POST", user: str | None = None
    ) -> Reply: ...


class RemoteObjects:
    """Governed objects over HTTP. A refused call raises `JobRefused`; nothing was changed."""

    def __init__(self, get: Callable[..., Reply], post: Posting, user: str | None = None) -> None:
        self._get = get
        self._post = post
        self._user = user

    def as_user(self, name: str) -> Self:
        """The same calls as a named person. A server with tokens uses the name of the token instead."""
        return type(self)(self._get, self._post, name)

    def create(self, object_type: str, object_id: str, **members: Any) -> Reply:
        return self._posted("/objects", {"object_type": object_type, "object_id": object_id, **members})

    def show(self, object_type: str, object_id: str) -> Reply:
        return self._get(_about("show", object_type, object_id))

    def why(self, object_type: str, object_id: str) -> Reply:
        return self._get(_about("why", object_type, object_id))

    def list(self, object_type: str, **query: Any) -> Reply:
        return self._get("/objects", {"object_type": object_type, **query})

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
        return self._get("/rollbacks", query)

    def set_gate(self, gate: str, verdict: str, reason: str, **members: Any) -> Reply:
        body = {"gate": gate, "verdict": verdict, "reason": reason, **members}
        return self._post("/gates", body, method="PUT", user=self._user)

    def gates(self, **query: Any) -> Reply:
        return self._get("/gates", query)

    def machines(self) -> Reply:
        return self._get("/machines")

    def figures(self) -> Reply:
        return self._get("/governance")

    def begin(self, job_id: str, **proof: Any) -> Reply:
        return self._posted(f"/jobs/{known_job(job_id)}/begin", proof)

    def finish(self, job_id: str, **members: Any) -> Reply:
        return self._posted(f"/jobs/{known_job(job_id)}/finish", members)

    def settle(self, job_id: str, **proof: Any) -> Reply:
        return self._posted(f"/jobs/{known_job(job_id)}/settle", proof)

    def _posted(self, path: str, members: Mapping[str, Any]) -> Reply:
        return self._post(path, members, user=self._user)


def known_job(job_id: str) -> str:
    """A valid job id; raises `JobRefused` for any other text, which could lead to another path."""
    if _JOB_ID.fullmatch(job_id) is None:
        raise JobRefused(not_found(job_id))
    return job_id


def segment(text: str) -> str:
    """A quoted segment of a path; dots only are escaped, since they would mean a parent."""
    quoted = quote(text, safe="", errors="replace")
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted


def _about(verb: str, object_type: str, object_id: str) -> str:
    return f"/objects/{verb}/{segment(object_type)}/{segment(object_id)}"
