"""Errors under `/api/v1/simulator`, with the statuses of its protocol; under `actions/` without an `error` member
around them.
"""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import Scope

from pendula.credit.runs.forking import ForkRefused
from pendula.credit.settings import InvalidSetting
from pendula.credit.views import InvalidSpan
from pendula.documents import DocumentRefused
from pendula.kernel.errors import PendulaError
from pendula.kernel.wording import suggestion
from pendula.server.errors import HttpRefused, InvalidRequest, error_response, json_response
from pendula.server.schedulers.credit.store import SimulatorStoreUnusable, StoreDisabled
from pendula.server.views import encode_view

PREFIX = "/api/v1/simulator"


class RunNotFound(HttpRefused):
    """The run does not exist or has another owner. Facts: `run_id`."""

    code = "RUN_NOT_FOUND"
    status = 404


class ArtifactNotFound(HttpRefused):
    code = "ARTIFACT_NOT_FOUND"
    status = 404


class UnknownEquivalent(HttpRefused):
    """Facts: `equivalent`, `known`."""

    code = "EQUIVALENT_NOT_FOUND"
    status = 404


class UnknownParticipant(HttpRefused):
    """Facts: `participant`."""

    code = "PARTICIPANT_NOT_FOUND"
    status = 404


class UnknownEngine(HttpRefused):
    """The settings of the server allow no such payment service. Facts: `engine`, `allowed`."""

    code = "UNKNOWN_ENGINE"
    status = 400


class ActionsDisabled(HttpRefused):
    """Manual actions are disabled (SIMULATOR_ACTIONS_ENABLE)."""

    code = "ACTIONS_DISABLED"
    status = 403


class TooManyRunStreams(HttpRefused):
    """The limit of open streams of this run, or of all runs, is reached."""

    code = "TOO_MANY_STREAMS"
    status = 429
    retry_after = 5


class BadRequest(HttpRefused):
    """The body or the query is invalid. Facts: `errors`, each with `path` and `message`."""

    code = "INVALID_REQUEST"
    status = 400


class ForkImpossible(HttpRefused):
    """The run has ended and cannot be forked. Facts: `tick`, `state`."""

    code = ForkRefused.code
    status = 409


class BadSpan(HttpRefused):
    code = InvalidSpan.code
    status = 400


class WrongSetting(HttpRefused):
    code = InvalidSetting.code
    status = 400


class MetricsUnavailable(HttpRefused):
    """The stored metrics cannot be read."""

    code = "METRICS_UNAVAILABLE"
    status = 503


class ScenarioNotStored(HttpRefused):
    """An uploaded scenario could not be stored."""

    code = "SCENARIO_NOT_STORED"
    status = 503


class Internal(HttpRefused):
    code = "INTERNAL_ERROR"
    status = 500


RETRY_HINT = "Check the disk of the server, then upload it again"


class SimulatorErrors:
    """Translates errors under `PREFIX`."""

    def translated(self, error: PendulaError, scope: Scope) -> PendulaError:
        match error:
            case DocumentRefused():
                errors = [{"path": fault.path, "message": fault.message} for fault in error.faults[:50]]
                return BadRequest(error.message, errors=errors)
            case InvalidRequest():
                return BadRequest(error.message, **error.details)
            case InvalidSetting():
                return WrongSetting(f"{error.message}{_hint(error.details)}", **error.details)
            case SimulatorStoreUnusable() if scope["method"] == "POST" and scope["path"].endswith("/scenarios"):
                reason = error.details.get("reason", "see the server log")
                return ScenarioNotStored(f"The scenario could not be stored: {reason}. {RETRY_HINT}")
            case SimulatorStoreUnusable() | StoreDisabled():
                return MetricsUnavailable("The store of runs cannot be read; see the server log")
            case ForkRefused():
                return ForkImpossible(error.message, **error.details)
            case InvalidSpan():
                return BadSpan(error.message, **error.details)
            case _:
                return error

    def response(self, error: PendulaError, scope: Scope) -> Response:
        response = error_response(error)
        if "/actions/" not in scope["path"]:
            return response
        bare = json_response(action_refusal(error.code, error.message, error.details), response.status_code)
        for name in ("retry-after", "www-authenticate"):
            if name in response.headers:
                bare.headers[name] = response.headers[name]
        return bare

    def defect(self) -> Internal:
        return Internal("Internal error; the server log has the details under this request id")


def _hint(facts: Mapping[str, object]) -> str:
    """`; did you mean …?` for an unknown setting."""
    allowed = facts.get("allowed")
    return suggestion(str(facts.get("variable")), allowed) if isinstance(allowed, list) else ""


def action_refusal(code: str, message: str, details: Mapping[str, object]) -> bytes:
    """The body of a refused manual action: `{code, message, details?}`."""
    form: dict[str, object] = {"code": code, "message": message}
    if details:
        form["details"] = dict(details)
    return encode_view(form)
