"""Rejects unknown query parameters, with a suggestion.

A misspelt `before` would otherwise silently return the present. Invalid values are explained in words instead of
regular expressions.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.requests import Request

from pendula.documents.faults import suggestion
from pendula.kernel.wording import shown
from pendula.server.data_directory import NAME, NAMES_ALLOWED
from pendula.server.errors import InvalidRequest

MOST_TOLD = 10
LONGEST_NAME = 64


async def only_known_names(request: Request) -> None:
    """A dependency for routes that declare all their parameters; raises `InvalidRequest`."""
    if not request.query_params:
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    if not route.include_in_schema:
        # The page handles its own query.
        return
    known = query_names(route)
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        faults = [{"place": "query", "name": name[:64], "problem": _problem(name, known)} for name in unknown]
        problems = "; ".join(f"{fault['name']} (query): {fault['problem']}" for fault in faults[:MOST_TOLD])
        raise InvalidRequest(f"The request is invalid: {problems}", faults=faults[:MOST_TOLD])


def query_names(route: APIRoute) -> tuple[str, ...]:
    """The query parameters of a route, in documented order."""
    return tuple(dict.fromkeys(_names(route.dependant)))


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for deeper in dependant.dependencies:
        yield from _names(deeper)


def _problem(name: str, known: tuple[str, ...]) -> str:
    if not known:
        return "this path has no parameters"
    return f"unknown parameter{suggestion(name, known)}; allowed are {', '.join(known)}"


def problem_of(fault: Mapping[str, Any]) -> str:
    """Explain why the framework refuses a parameter."""
    if fault["type"] != "string_pattern_mismatch":
        return str(fault["msg"])
    given, pattern = fault["input"], fault["ctx"]["pattern"]
    if pattern != f"^{NAME.pattern}$":
        return f"{shown(given)} does not match {pattern}"
    return f"{shown(given)} is not a name; a name has {NAMES_ALLOWED} and does not begin with a hyphen{_near(given)}"


def _near(given: str) -> str:
    """The closest valid name, if there is one."""
    near = re.sub(r"[^a-z0-9]+", "-", given[:LONGEST_NAME].lower()).strip("-")
    return f", such as {near!r}" if NAME.fullmatch(near) else ""
