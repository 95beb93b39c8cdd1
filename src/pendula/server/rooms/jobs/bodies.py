"""Bodies and queries of calls to the scheduler: one JSON object, of a bounded size, read by the reader of documents."""

import asyncio
from re import compile as regex
from typing import Any

from starlette.requests import Request

from pendula.documents import DocumentLimits, read_bytes
from pendula.jobs.model import Code
from pendula.jobs.request_reading import Faults
from pendula.kernel.limits import MIB
from pendula.server.errors import BodyTooLarge
from pendula.server.rooms.jobs.errors import BodyNotObject
from pendula.server.routes.bodies import QUICK_BYTES

BODY_MOST = MIB
BATCH_BODY_MOST = 8 * MIB
INTEGERS = frozenset({"limit", "window_sec"})
_LIMITS = DocumentLimits()
_INTEGER = regex(r"-?[0-9]{1,18}")


async def read_object(request: Request, most: int = BODY_MOST) -> dict[str, Any]:
    """The object in the body; raises `BodyTooLarge`, `BodyNotObject` or `DocumentRefused`."""
    declared = request.headers.get("content-length", "0")
    if declared.isascii() and declared.isdigit():
        _check(int(declared[:20]), most)
    data = bytearray()
    async for part in request.stream():
        data += part
        _check(len(data), most)
    if len(data) <= QUICK_BYTES:
        return _object(bytes(data))
    return await asyncio.to_thread(_object, bytes(data))


def _check(size: int, most: int) -> None:
    if size > most:
        raise BodyTooLarge(f"The body has at least {size} bytes; allowed are {most}", value=size, allowed=most)


def _object(data: bytes) -> dict[str, Any]:
    value: Any = read_bytes(data, limits=_LIMITS).value
    if not isinstance(value, dict):
        raise BodyNotObject("The body is not an object; allowed is one JSON object")
    return value


def query_of(request: Request) -> dict[str, Any] | Faults:
    """The parameters behind the path, those that are integers as such; a parameter that stands there twice is a fault.

    What cannot be read as an integer stays as it is, so that whoever asks for it says what is allowed.
    """
    faults = Faults()
    found: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in found:
            faults.add(name, Code.INVALID_FIELD, allowed="to be given once")
        found[name] = int(value) if name in INTEGERS and _INTEGER.fullmatch(value) else value
    return faults if faults.found else found
