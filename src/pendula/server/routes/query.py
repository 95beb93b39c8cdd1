"""The names after the question mark: a name that a route does not know is refused, with the one that was meant.

Whoever misspells `before` would otherwise be shown the present, and take it for the past. What is given under a name
that is known, and cannot be, is told in words too: nobody should have to read a regular expression.
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
    """A dependency of routes that take all their parameters as arguments; raises `InvalidRequest`."""
    if not request.query_params:
        return
    route = request.scope["route"]
    assert isinstance(route, APIRoute)
    if not route.include_in_schema:
        # The page itself: what its address holds is the page's business.
        return
    known = query_names(route)
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        faults = [{"place": "query", "name": name[:64], "problem": _problem(name, known)} for name in unknown]
        told = "; ".join(f"{fault['name']} (query): {fault['problem']}" for fault in faults[:MOST_TOLD])
        raise InvalidRequest(f"The request cannot be read: {told}", faults=faults[:MOST_TOLD])


def query_names(route: APIRoute) -> tuple[str, ...]:
    """What a route takes after the question mark, in the order in which it is documented."""
    return tuple(dict.fromkeys(_names(route.dependant)))


def _names(dependant: Dependant) -> Iterator[str]:
    yield from (parameter.alias for parameter in dependant.query_params)
    for deeper in dependant.dependencies:
        yield from _names(deeper)


def _problem(name: str, known: tuple[str, ...]) -> str:
    if not known:
        return "this path takes no parameters"
    return f"no such parameter{suggestion(name, known)}; there are {', '.join(known)}"


def problem_of(fault: Mapping[str, Any]) -> str:
    """What is wrong with a parameter that the framework refuses."""
    if fault["type"] != "string_pattern_mismatch":
        return str(fault["msg"])
    given, pattern = fault["input"], fault["ctx"]["pattern"]
    if pattern != f"^{NAME.pattern}$":
        return f"{shown(given)} is not of the form {pattern}"
    return f"{shown(given)} is no name; a name has {NAMES_ALLOWED}, no hyphen in front{_near(given)}"


def _near(given: str) -> str:
    """The name that comes nearest, where there is one."""
    near = re.sub(r"[^a-z0-9]+", "-", given[:LONGEST_NAME].lower()).strip("-")
    return f", such as {near!r}" if NAME.fullmatch(near) else ""
