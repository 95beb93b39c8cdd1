"""Bodies of requests: JSON read by the one reader of documents, then made into the type that the route takes.

Whatever is wrong comes back as one `DocumentRefused` with places, the same for a slip of the pen and a wrong type.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, overload

import msgspec
from starlette.requests import Request

from pendula.documents import (
    CONTENT_TYPES,
    Document,
    DocumentLimits,
    DocumentRefused,
    Fault,
    Format,
    path_text,
    read_bytes,
)
from pendula.kernel.limits import BODY_BYTES, BODY_DIGITS, BODY_VALUES, DOCUMENT_DEPTH, DOCUMENT_FAULTS
from pendula.kernel.wording import explain_validation_error, path_to, split_place
from pendula.server.errors import WrongContentType
from pendula.server.routes.dependencies import supervisor_of
from pendula.server.settings import Settings

T = TypeVar("T")

# Below this, reading is quicker than handing it to a thread.
QUICK_BYTES = 64 * 1024


@overload
async def read_body(request: Request, kind: type[T], *, yaml: bool = False) -> T: ...
@overload
async def read_body(request: Request, kind: Any, *, yaml: bool = False) -> Any: ...
async def read_body(request: Request, kind: Any, *, yaml: bool = False) -> Any:
    """The body as a value of `kind`; raises `DocumentRefused`, `BodyTooLarge`, `SlowRequest` or `WrongContentType`.

    With `yaml` the route takes YAML too, by its content type.
    """
    form = format_of(request, yaml=yaml)
    return await read_body_with(request, lambda data, limits: parse(data, kind, limits, form))


async def read_body_with(request: Request, read: Callable[[bytes, DocumentLimits], T]) -> T:
    """What `read` makes of the body, in a thread where that takes long; raises as `read_body` does."""
    data = await request.body()
    limits = document_limits(supervisor_of(request).settings)
    if len(data) <= QUICK_BYTES:
        return read(data, limits)
    return await asyncio.to_thread(read, data, limits)


def format_of(request: Request, *, yaml: bool) -> Format:
    """How the body is written, by its content type; raises `WrongContentType` for JSON5, which only routes take that
    read their bodies themselves, and for YAML where it is not taken."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = CONTENT_TYPES.get(given, Format.JSON)
    if form is Format.JSON5 or (form is Format.YAML and not yaml):
        raise WrongContentType(f"The content type is {given}; it must be application/json here", content_type=given)
    return form


def parse(data: bytes, kind: Any, limits: DocumentLimits, form: Format = Format.JSON) -> Any:
    """The text `data` as a value of `kind`."""
    return as_kind(read_bytes(data, form, limits=limits), kind)


def as_kind(document: Document, kind: Any) -> Any:
    """The value of a document as one of `kind`; raises `DocumentRefused`."""
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
        message=explain_validation_error(sentence, document.value, kind),
    )
    return DocumentRefused([fault], document.source_name)
