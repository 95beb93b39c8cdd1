"""The scheduler `playback` over HTTP: players are made, closed and removed; what is asked of one is one command each.

State, journal, commands, reasons and the stream of what is shown are the routes that every engine has. A player takes
its records from the library of the server (`channels`); time goes on by itself.
"""

import secrets
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from pendula.playback import events
from pendula.playback.clocks import check_zone, clock_at
from pendula.playback.engine import Player
from pendula.server.data_directory import NAME
from pendula.server.errors import json_response
from pendula.server.hosting.engine_host import AnyDriver, EngineHost
from pendula.server.hosting.moments import said
from pendula.server.hosting.scheduler_spec import Lifecycle, New, SchedulerSpec, Sentences
from pendula.server.hosting.supervisor import Supervisor
from pendula.server.routes.bodies import read_body
from pendula.server.routes.dependencies import Operator, RequestId, Supervised, Viewer
from pendula.server.routes.engine import LARGEST_N, RecordNumber, command_response
from pendula.server.routes.lifecycle import check_name
from pendula.server.routes.openapi import CHANGE_ERRORS, READ_ERRORS, Responses, answers, refusals, takes
from pendula.server.schedulers.playback import bounds, channel_routes, choices, demo, views
from pendula.server.schedulers.playback.channel_routes import library_service_of
from pendula.server.schedulers.playback.library_service import LibraryService
from pendula.server.schedulers.playback.request_bodies import (
    Artwork,
    ArtworkReference,
    BanRequest,
    ChannelNames,
    ChannelReference,
    NewPlayer,
    ResetRequest,
    SettingsChange,
    given,
)
from pendula.server.views import Became, CommandResult, Complaint, Effect, EngineSummary, encode_view

Handler = Callable[..., Awaitable[Response]]

BASE = "/api/v1/playback"
PLAYER = BASE + "/{player}"
MOST_PEEKED = 2048
RESERVED = ("channels",)

PlayerName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]


class PlayerSummary(EngineSummary, frozen=True):
    """One player; `state` is ready, starting, broken or closed, `t` the milliseconds it has been on."""


class PlayerList(Struct, frozen=True):
    players: list[PlayerSummary]


VIEWS = (
    PlayerList,
    NewPlayer,
    SettingsChange,
    ChannelNames,
    Artwork,
    BanRequest,
    ArtworkReference,
    ChannelReference,
    ResetRequest,
    views.PlayerNow,
    views.PeekView,
    views.ItemWhy,
    *channel_routes.VIEWS,
)
router = APIRouter(tags=["playback"])

_STATS: Responses = {200: {"description": "Counts", "content": {"application/json": {"schema": {"type": "object"}}}}}


# Players come and go


async def begin(request: Request, supervisor: Supervised) -> New:
    """A new player, which shows something at once if it follows anything."""
    body = await read_body(request, NewPlayer)
    check_name(body.name, LIFECYCLE.noun, RESERVED)
    config = _config(body, library_service_of(supervisor))
    first: tuple[object, ...] = (events.Next(),) if body.channels else ()
    if body.settings.day_parts:
        # What is shown first is of the part of the day that holds.
        first = (clock_at(body.settings.zone or "UTC", supervisor.clock.now() // 1000), *first)
    return New(body.name, config, first)


LIFECYCLE = Lifecycle(
    noun="player",
    plural="players",
    begin=begin,
    takes=takes("NewPlayer"),
    summary=PlayerSummary,
    listing=PlayerList,
    sentences=Sentences(
        make="Make a player. It begins to show at once if it follows anything; time goes on by itself.",
        close="Close a player: its time stands until it is opened again, also after a restart of the server.",
        open="Open a player that was closed, as it was, and with what came to its channels since.",
        remove="Remove a player with all it ever wrote; the library stays.",
    ),
)


# What is asked of a player


def _does(name: str, sentence: str, command: Callable[[], object]) -> None:
    """A route for a command that needs no words."""

    @router.post(
        f"{PLAYER}/{name}",
        responses=answers(CommandResult, CHANGE_ERRORS),
        description=sentence,
        operation_id=f"playback_{name}",
    )
    async def do(player: PlayerName, supervisor: Supervised, caller: Operator, request_id: RequestId) -> Response:
        return await _command(supervisor, player, command(), caller, request_id)


_does("next", "Show the next item now; the answer is that item, or null.", events.Next)
_does("prev", "Show the item before, as far as the history goes; else the answer is null.", events.Prev)
_does("pause", "Let what is on stay on.", events.Pause)
_does("resume", "Go on; what is on stays as long as was left of its time.", events.Resume)


def _asks(name: str, body: str, method: str = "POST") -> Callable[[Handler], Handler]:
    return router.api_route(
        f"{PLAYER}/{name}",
        methods=[method],
        responses=answers(CommandResult, CHANGE_ERRORS),
        openapi_extra=takes(body),
        operation_id=f"playback_{name.replace('-', '_')}",
    )


@_asks("follow", "ChannelNames")
async def follow(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Follow channels of the library; they come last in the order. One new epoch begins, however many they are."""
    host = supervisor.host(SCHEDULER.name, player)
    body = await read_body(request, ChannelNames)
    n, outcome = await library_service_of(supervisor).follow(host, body.channels, caller.name, request_id)
    return command_response(Player, n, outcome, Became(Effect.DONE))


@_asks("unfollow", "ChannelNames")
async def unfollow(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Follow channels no more."""
    body = await read_body(request, ChannelNames)
    command = events.Update(tuple(map(events.Unfollow, body.channels)))
    return await _command(supervisor, player, command, caller, request_id)


@_asks("settings", "SettingsChange", "PATCH")
async def change_settings(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Change settings. What is set to what it is already changes nothing."""
    changes = given(await read_body(request, SettingsChange))
    dwell_ms = changes.pop("dwell_ms", None)
    if "zone" in changes:
        check_zone(changes["zone"])
    response = await _command(supervisor, player, events.Configure(changes, dwell_ms), caller, request_id)
    await library_service_of(supervisor).timekeeper.tell(supervisor.host(SCHEDULER.name, player))
    return response


@_asks("nae", "Artwork")
async def insert(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """A new artwork event. The answer says what became of it: INSERTED, MERGED, DISABLED or REJECTED."""
    body = await read_body(request, Artwork)
    return await _command(supervisor, player, events.Insert(**msgspec.structs.asdict(body)), caller, request_id)


@_asks("ban", "BanRequest")
async def ban(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Show an item no more until its channel is refreshed; or an artwork, by its id, from whatever channel."""
    body = await read_body(request, BanRequest)
    if body.id is None:
        return await _command(supervisor, player, events.Ban(body.ordinal), caller, request_id)
    return await _command(supervisor, player, events.BanArtwork(body.id, body.for_ms), caller, request_id)


@_asks("lift", "ArtworkReference")
async def lift(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Let a banned artwork come again; the answer lists what is banned still."""
    body = await read_body(request, ArtworkReference)
    return await _command(supervisor, player, events.Lift(body.id), caller, request_id)


@_asks("pin", "Artwork")
async def pin(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Show this artwork next, once, before what was made ahead; the answer lists what is pinned."""
    body = await read_body(request, Artwork)
    return await _command(supervisor, player, events.ShowNext(**msgspec.structs.asdict(body)), caller, request_id)


@_asks("pause-channel", "ChannelReference")
async def pause_channel(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Let a channel rest without a new epoch: its turns stay where they are, the others share its part."""
    body = await read_body(request, ChannelReference)
    return await _command(supervisor, player, events.PauseChannel(body.channel), caller, request_id)


@_asks("resume-channel", "ChannelReference")
async def resume_channel(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Let a channel take part again, from where it was."""
    body = await read_body(request, ChannelReference)
    return await _command(supervisor, player, events.ResumeChannel(body.channel), caller, request_id)


@_asks("reset", "ResetRequest")
async def reset(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Begin a new epoch."""
    body = await read_body(request, ResetRequest)
    return await _command(supervisor, player, events.Reset(body.reason), caller, request_id)


async def _command(
    supervisor: Supervisor, player: str, command: object, caller: Operator, request_id: RequestId
) -> Response:
    n, outcome = await supervisor.host(SCHEDULER.name, player).submit(command, caller.name, request_id)
    return command_response(Player, n, outcome, became(command, outcome))


NOT_INSERTED = {
    "REJECTED": "These bytes are not a record",
    "BANNED": "The artwork is banned; lift the ban to show it",
    "DISABLED": "New artwork is off in the settings of this player",
}
# These say by an event that they changed something.
TOLD_BY_EVENTS = (events.PauseChannel, events.ResumeChannel, events.Lift, events.Pause, events.Resume, events.Prev)


def became(command: object, outcome: Outcome[Any]) -> Became:
    """What became of a command to a player."""
    if isinstance(command, events.Insert) and isinstance(outcome.answer, dict):
        result = str(outcome.answer["result"])
        if result in NOT_INSERTED:
            return Became(Effect.REFUSED, [Complaint(result, NOT_INSERTED[result])])
    if isinstance(command, TOLD_BY_EVENTS) and not outcome.events:
        return Became(Effect.NONE)
    return Became(Effect.DONE)


# What a player tells


@router.get(f"{PLAYER}/now", responses=answers(views.PlayerNow), operation_id="playback_now")
async def now(player: PlayerName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None) -> Response:
    """What is on and until when, what comes and what was, who got how much; now or after record `at`."""
    host = supervisor.host(SCHEDULER.name, player)
    if at is None:
        return json_response(encode_view(await host.ask(lambda driver: _now(driver, host, supervisor))))
    return json_response(await supervisor.replayed(lambda: _then(host, at)))


@router.get(f"{PLAYER}/peek", responses=answers(views.PeekView), operation_id="playback_peek")
async def peek(
    player: PlayerName, supervisor: Supervised, _: Viewer, n: Annotated[int, Query(ge=0, le=MOST_PEEKED)] = 10
) -> Response:
    """Up to `n` items that are generated already; looking changes nothing."""
    host = supervisor.host(SCHEDULER.name, player)
    return json_response(encode_view(await host.ask(lambda driver: views.peek(_player(driver.engine), n))))


@router.get(f"{PLAYER}/items/{{ordinal}}", responses=answers(views.ItemWhy), operation_id="playback_item")
async def item(
    player: PlayerName,
    ordinal: Annotated[int, Path(ge=0, le=LARGEST_N)],
    supervisor: Supervised,
    _: Viewer,
    at: RecordNumber | None = None,
) -> Response:
    """Why an item of the present epoch came up: now, or as of record `at`."""
    host = supervisor.host(SCHEDULER.name, player)
    if at is None:
        return json_response(encode_view(await host.ask(lambda driver: views.why(_player(driver.engine), ordinal))))
    return json_response(await supervisor.replayed(lambda: _why_then(host, ordinal, at)))


@router.get(f"{PLAYER}/stats", responses=_STATS | refusals(READ_ERRORS), operation_id="playback_stats")
async def stats(player: PlayerName, supervisor: Supervised, _: Viewer) -> Response:
    """Counts over all epochs, and where the present one stands."""
    host = supervisor.host(SCHEDULER.name, player)
    return json_response(encode_view(await host.ask(lambda driver: views.stats(_player(driver.engine)))))


def _config(body: NewPlayer, service: LibraryService) -> Json:
    """What a new player begins with; raises `UnknownChannel`."""
    held = [service.library.held(channel) for channel in body.channels]
    settings = given(body.settings)
    check_zone(settings.get("zone", "UTC"))
    exposure = settings.setdefault("exposure", {})
    for name, counts in (
        ("total_count", {one.contents.id: one.total_count for one in held}),
        ("recent_count", {one.contents.id: one.recent_count for one in held}),
    ):
        exposure[name] = counts | exposure.get(name, {})
    return {
        "seed": secrets.randbits(64) if body.seed is None else body.seed,
        "channels": [msgspec.to_builtins(one.contents) for one in held],
        "settings": settings,
        "dwell_ms": body.dwell_ms,
    }


def _now(driver: AnyDriver, host: EngineHost, supervisor: Supervisor) -> views.PlayerNow:
    # After a flush everything that is told is durable, and the state is that of the last record.
    n = driver.flush()
    assert host.pace is not None
    clock, wall = host.pace.reading(), supervisor.clock.now()
    return views.now_of(
        _player(driver.engine), n, clock, lambda moment: views.format_ms(wall + (moment - clock) * 1000)
    )


def _then(host: EngineHost, at: int) -> bytes:
    with host.past.at(at) as engine:
        player = _player(engine)
        return encode_view(views.now_of(player, at, player.now(), views.wall_time_then(host.driver.journal, at)))


def _why_then(host: EngineHost, ordinal: int, at: int) -> bytes:
    with host.past.at(at) as engine:
        return encode_view(views.why(_player(engine), ordinal))


def _player(engine: object) -> Player:
    assert isinstance(engine, Player)
    return engine


SCHEDULER = SchedulerSpec(
    name="playback",
    title="Playback",
    sentence="What a display shows next: each channel gets its share, nothing twice in a row, new things soon.",
    engine=Player,
    demo=demo.DEMO,
    routers=(channel_routes.router, router),
    views=VIEWS,
    lifecycle=LIFECYCLE,
    prefix=BASE,
    bound=bounds.check,
    store=LibraryService,
    advance=events.Advance,
    became=became,
    incidents={"diagnosed": said, "blank": lambda _: "The screen is empty"},
    choices=choices.choices,
)
