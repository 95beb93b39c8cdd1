"""Bodies of requests: JSON read by the one reader of documents, then made into the type that the route takes.

Whatever is wrong comes back as one `DocumentRefused` with places, the same for a slip of the pen and a wrong type.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec
from starlette.requests import Request

from pendula.documents import Document, DocumentLimits, DocumentRefused, Fault, path_text, read_bytes
from pendula.kernel.limits import BODY_BYTES, BODY_DIGITS, BODY_VALUES, DOCUMENT_DEPTH, DOCUMENT_FAULTS
from pendula.kernel.wording import path_to, split_place, worded
from pendula.server.routes.dependencies import supervisor_of
from pendula.server.settings import Settings

T = TypeVar("T")

# Below this, reading is quicker than handing it to a thread.
QUICK_BYTES = 64 * 1024


@overload
async def read_body(request: Request, kind: type[T]) -> T: ...
@overload
async def read_body(request: Request, kind: Any) -> Any: ...
async def read_body(request: Request, kind: Any) -> Any:
    """The body as a value of `kind`; raises `DocumentRefused`, `BodyTooLarge` or `SlowRequest`."""
    return await read_body_with(request, lambda data, limits: parse(data, kind, limits))


async def read_body_with(request: Request, read: Callable[[bytes, DocumentLimits], T]) -> T:
    """What `read` makes of the body, in a thread where that takes long; raises as `read_body` does."""
    data = await request.body()
    limits = document_limits(supervisor_of(request).settings)
    if len(data) <= QUICK_BYTES:
        return read(data, limits)
    return await asyncio.to_thread(read, data, limits)


def parse(data: bytes, kind: Any, limits: DocumentLimits) -> Any:
    """The JSON text `data` as a value of `kind`."""
    document = read_bytes(data, limits=limits)
    try:
        return msgspec.convert(document.value, kind)
    except msgspec.ValidationError as error:
        raise _refused(document, str(error), kind) from None


def document_limits(settings: Settings) -> DocumentLimits:
    """How much a body may hold: far less than a file, since anybody with a token may send many."""
    return DocumentLimits(
        size=settings.allowed(BODY_BYTES),
        depth=settings.allowed(DOCUMENT_DEPTH),
        nodes=settings.allowed(BODY_VALUES),
        faults=settings.allowed(DOCUMENT_FAULTS),
        digits=settings.allowed(BODY_DIGITS),
    )


def _refused(document: Document, sentence: str, kind: Any) -> DocumentRefused:
    path = path_to(split_place(sentence, document.value)[1], document.value, kind)
    place = document.place(path)
    fault = Fault(
        code="invalid_field",
        path=path_text(path),
        line=place.line,
        column=place.column,
        value=msgspec.UNSET,
        message=worded(sentence, document.value, kind),
    )
    return DocumentRefused([fault], document.source_name)
