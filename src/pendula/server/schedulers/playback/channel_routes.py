"""The library over HTTP: upload, refresh and remove channels; players that follow one are updated."""

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Annotated

from fastapi import APIRouter, Path
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.playback.cache.merge import Page
from pendula.playback.choosing.records import pack
from pendula.playback.model import KEY_BYTES, PAYLOAD_BYTES, InvalidRecord, Record
from pendula.server.api.openapi import CHANGE_ERRORS, WRITE_ERRORS, Responses, answers, refusals, takes
from pendula.server.api.requests import Admin, Operator, Supervised, Viewer, read_body
from pendula.server.errors import NotFound, json_response
from pendula.server.runtime.scheduler_spec import Host
from pendula.server.schedulers.playback.library_service import LibraryService
from pendula.server.schedulers.playback.views import DiagnosticView, RecordForm, Upload, diagnostics_of
from pendula.server.settings import CHANNEL
from pendula.server.views import encode_view

BASE = "/api/v1/playback/channels"
ONE = BASE + "/{channel}"

ChannelName = Annotated[str, Path(pattern=f"^{CHANNEL.pattern}$")]


class ChannelView(Struct, frozen=True):
    """One channel of the library. `generation` identifies the edition; `folder`: the channel mirrors a folder."""

    name: str
    records: int
    generation: int
    total_count: int
    recent_count: int
    folder: bool
    trouble: list[DiagnosticView]


class ChannelList(Struct, frozen=True):
    channels: list[ChannelView]


class ChannelChange(Struct, frozen=True):
    """The result of a change: whether there is a new edition, and the players that were updated."""

    channel: ChannelView
    written: bool
    updated_players: list[str]


router = APIRouter(tags=["playback"])

_GONE: Responses = {204: {"description": "The channel is removed"}}


@router.get(BASE, responses=answers(ChannelList), operation_id="playback_channels")
async def list_channels(supervisor: Supervised, _: Viewer) -> Response:
    """All channels of the library."""
    service = library_service_of(supervisor)
    return json_response(encode_view(ChannelList([_view(service, name) for name in service.library.names()])))


@router.get(ONE, responses=answers(ChannelView), operation_id="playback_channel")
async def read(channel: ChannelName, supervisor: Supervised, _: Viewer) -> Response:
    """One channel."""
    return json_response(encode_view(_view(_having(supervisor, channel), channel)))


@router.put(
    ONE,
    responses=answers(ChannelChange, CHANGE_ERRORS),
    openapi_extra=takes(Upload),
    operation_id="playback_upload",
)
async def upload(channel: ChannelName, request: Request, supervisor: Supervised, _: Operator) -> Response:
    """Merge records into a channel, creating it if necessary. Players are updated if the contents change."""
    body = await read_body(request, Upload)
    records = [_record(form, place) for place, form in enumerate(body.records)]
    service = library_service_of(supervisor)
    page = Page(records, body.total_count or 0, body.recent_count, body.complete)
    done, updated = await service.put(channel, page, body.k, counted=body.total_count is not None)
    return json_response(encode_view(ChannelChange(_view(service, channel), done.written, updated)))


@router.post(f"{ONE}/refresh", responses=answers(ChannelChange, WRITE_ERRORS), operation_id="playback_refresh")
async def refresh(channel: ChannelName, supervisor: Supervised, _: Operator) -> Response:
    """Read a channel again: players that could not read it retry; a folder is scanned soon."""
    service = _having(supervisor, channel)
    updated = await service.again(channel)
    return json_response(encode_view(ChannelChange(_view(service, channel), False, updated)))


@router.delete(
    ONE,
    status_code=204,
    response_class=Response,
    responses=_GONE | refusals(CHANGE_ERRORS),
    operation_id="playback_channel_delete",
)
async def delete(channel: ChannelName, supervisor: Supervised, _: Admin) -> Response:
    """Remove a channel; it is empty for players that follow it."""
    await _having(supervisor, channel).remove(channel)
    return Response(status_code=204)


def library_service_of(host: Host) -> LibraryService:
    """The library of a server."""
    store = host.store("playback")
    assert isinstance(store, LibraryService)
    return store


def _having(host: Host, channel: str) -> LibraryService:
    service = library_service_of(host)
    known = service.library.names()
    if channel not in known:
        raise NotFound(f"The library has no channel {channel!r}", channel=channel, known=known)
    return service


def _view(service: LibraryService, channel: str) -> ChannelView:
    held = service.library.held(channel)
    return ChannelView(
        name=channel,
        records=held.contents.count,
        generation=held.contents.generation,
        total_count=held.total_count,
        recent_count=held.recent_count,
        folder=channel in service.folders,
        trouble=diagnostics_of(service.troubles(held)),
    )


def _record(form: RecordForm, place: int) -> Record:
    """The checked record; raises `InvalidRecord` with its place in the upload."""
    try:
        record = Record(
            id=form.id,
            ts=form.ts,
            kind=form.kind,
            format=form.format,
            flags=form.flags,
            dwell_ms=form.dwell_ms,
            modified_ts=form.modified_ts,
            storage_key=_bytes("storage_key", form.storage_key, KEY_BYTES),
            payload=_bytes("payload", form.payload, PAYLOAD_BYTES),
        )
        pack(record)
    except InvalidRecord as refused:
        raise InvalidRecord(f"records[{place}]: {refused.message}", place=place, **refused.details) from None
    return record


def _bytes(field: str, text: str | None, size: int) -> bytes:
    if text is None:
        return bytes(size)
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise InvalidRecord(f"{field} is not base64; it must be {size} bytes in base64", field=field) from None
