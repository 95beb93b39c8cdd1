"""Request bodies: JSON read with `pendula.documents` and converted to the type of the route.

All faults, of syntax and of types, are reported in one `DocumentRefused` with their places.
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

# Smaller bodies are read faster than a thread starts.
QUICK_BYTES = 64 * 1024


@overload
async def read_body(request: Request, kind: type[T], *, yaml: bool = False) -> T: ...
@overload
async def read_body(request: Request, kind: Any, *, yaml: bool = False) -> Any: ...
async def read_body(request: Request, kind: Any, *, yaml: bool = False) -> Any:
    """The body as a value of `kind`; raises `DocumentRefused`, `BodyTooLarge`, `SlowRequest` or `WrongContentType`.

    With `yaml` the route also accepts YAML, by content type.
    """
    form = format_of(request, yaml=yaml)
    return await read_body_with(request, lambda data, limits: parse(data, kind, limits, form))


async def read_body_with(request: Request, read: Callable[[bytes, DocumentLimits], T]) -> T:
    """The result of `read` for the body, in a thread if large; raises as `read_body` does."""
    data = await request.body()
    limits = document_limits(supervisor_of(request).settings)
    if len(data) <= QUICK_BYTES:
        return read(data, limits)
    return await asyncio.to_thread(read, data, limits)


def format_of(request: Request, *, yaml: bool) -> Format:
    """The format of the body by its content type; raises `WrongContentType` for JSON5, which only routes with their own
    reader accept, and for YAML unless `yaml`."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    form = CONTENT_TYPES.get(given, Format.JSON)
    if form is Format.JSON5 or (form is Format.YAML and not yaml):
        raise WrongContentType(f"The content type is {given}; this route accepts application/json", content_type=given)
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
    """Limits of a body: far below those of a file, since any caller with a token can send many."""
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
