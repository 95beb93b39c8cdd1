"""The scheduler `playback` over HTTP: players are created, closed and removed; each request to one is one command.

State, journal, commands, reasons and the event stream have the routes of every engine. A player gets its records from
the library of the server (`channels`); the server advances its time.
"""

import secrets
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Path, Query
from msgspec import Struct
from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response

from pendula.demo.playback import DEMO
from pendula.kernel.canonical import Json
from pendula.kernel.engine import Outcome
from pendula.playback import messages
from pendula.playback.clocks import check_zone, clock_at
from pendula.playback.engine import Player
from pendula.server.api.engines import LARGEST_N, RecordNumber, check_name, command_response, read_at, submitted
from pendula.server.api.openapi import CHANGE_ERRORS, READ_ERRORS, Responses, answers, refusals, takes
from pendula.server.api.requests import Operator, RequestId, Supervised, Viewer, read_body
from pendula.server.data_directory import NAME
from pendula.server.errors import TooMuchAtOnce, json_response
from pendula.server.runtime.engine_host import AnyDriver, EngineHost
from pendula.server.runtime.past import event_sentence
from pendula.server.runtime.scheduler_spec import CommandRoute, Lifecycle, New, SchedulerSpec, Sentences
from pendula.server.runtime.supervisor import Supervisor
from pendula.server.schedulers.playback import channel_routes, views
from pendula.server.schedulers.playback.channel_routes import library_service_of
from pendula.server.schedulers.playback.library_service import LibraryService
from pendula.server.schedulers.playback.views import (
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

BASE = "/api/v1/playback"
PLAYER = BASE + "/{player}"
MOST_PEEKED = 2048
RESERVED = ("channels",)
MOST_TAKEN = 10_000

PlayerName = Annotated[str, Path(pattern=f"^{NAME.pattern}$")]


class PlayerSummary(EngineSummary, frozen=True):
    """One player; `state` is ready, starting, broken or closed, `t` its time in milliseconds."""


class PlayerList(Struct, frozen=True):
    players: list[PlayerSummary]


router = APIRouter(tags=["playback"])

_STATS: Responses = {200: {"description": "Counts", "content": {"application/json": {"schema": {"type": "object"}}}}}


# Create, close and remove players


async def begin(request: Request, supervisor: Supervised) -> New:
    """Create a player; it shows an item at once if it follows channels."""
    body = await read_body(request, NewPlayer)
    check_name(body.name, LIFECYCLE.noun, RESERVED)
    config = _config(body, library_service_of(supervisor))
    first: tuple[object, ...] = (messages.Next(),) if body.channels else ()
    if body.settings.day_parts:
        # The clock comes first, so that the first item has the weights of the present day part.
        first = (clock_at(body.settings.zone or "UTC", supervisor.clock.now() // 1000), *first)
    return New(body.name, config, first)


LIFECYCLE = Lifecycle(
    noun="player",
    plural="players",
    begin=begin,
    takes=takes(NewPlayer),
    summary=PlayerSummary,
    listing=PlayerList,
    sentences=Sentences(
        make="Create a player. It shows an item at once if it follows channels; its time runs.",
        close="Close a player: its time stops until it is opened again, also across restarts of the server.",
        open="Open a closed player in its old state, and refresh its channels.",
        remove="Remove a player and its journal; the library stays.",
    ),
)


# Commands


def _route(
    name: str, sentence: str, command: Callable[[Any], object], body: type | None = None, title: str = ""
) -> CommandRoute:
    async def made(_: EngineHost, given: Any) -> object:
        return command(given)

    return CommandRoute(name, sentence, made, body, title=title)


def _banned(body: BanRequest) -> messages.Commands:
    return messages.Ban(body.ordinal) if body.id is None else messages.BanArtwork(body.id, body.for_ms)


COMMANDS = (
    _route("next", "Show the next item now; the answer is that item, or null.", lambda _: messages.Next()),
    _route(
        "prev", "Show the previous item of the history; the answer is that item, or null.", lambda _: messages.Prev()
    ),
    _route("pause", "Pause the player; the current item stays.", lambda _: messages.Pause()),
    _route("resume", "Resume the player; the current item keeps its remaining time.", lambda _: messages.Resume()),
    _route(
        "unfollow",
        "Unfollow channels.",
        lambda body: messages.Update(tuple(map(messages.Unfollow, body.channels))),
        ChannelNames,
    ),
    _route(
        "nae",
        "Insert a new artwork. The result is INSERTED, MERGED, DISABLED, REJECTED or BANNED.",
        lambda body: messages.Insert(**asdict(body)),
        Artwork,
        title="Insert",
    ),
    _route(
        "ban",
        "Hide an item until its channel is refreshed, or ban an artwork by id in all channels.",
        _banned,
        BanRequest,
    ),
    _route(
        "lift",
        "Lift a ban; the answer lists the remaining bans.",
        lambda body: messages.Lift(body.id),
        ArtworkReference,
    ),
    _route(
        "pin",
        "Show this artwork next, once, before the lookahead; the answer lists the pinned ids.",
        lambda body: messages.ShowNext(**asdict(body)),
        Artwork,
    ),
    _route(
        "pause-channel",
        "Pause a channel without a new epoch: it keeps credit and cursor, the others share its part.",
        lambda body: messages.PauseChannel(body.channel),
        ChannelReference,
    ),
    _route(
        "resume-channel",
        "Resume a channel where it was paused.",
        lambda body: messages.ResumeChannel(body.channel),
        ChannelReference,
    ),
    _route("reset", "Begin a new epoch.", lambda body: messages.Reset(body.reason), ResetRequest),
)


@router.post(
    f"{PLAYER}/follow",
    responses=answers(CommandResult, CHANGE_ERRORS),
    openapi_extra=takes(ChannelNames),
    operation_id="playback_follow",
)
async def follow(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Follow channels of the library, last in the order; begins one new epoch."""
    host = supervisor.host(SCHEDULER.name, player)
    body = await read_body(request, ChannelNames)
    ticket = await library_service_of(supervisor).follow(host, body.channels, caller.name, request_id)
    return command_response(Player, ticket, Became(Effect.DONE))


@router.patch(
    f"{PLAYER}/settings",
    responses=answers(CommandResult, CHANGE_ERRORS),
    openapi_extra=takes(SettingsChange),
    operation_id="playback_settings",
)
async def change_settings(
    player: PlayerName, request: Request, supervisor: Supervised, caller: Operator, request_id: RequestId
) -> Response:
    """Change settings. Equal values change nothing."""
    host = supervisor.host(SCHEDULER.name, player)
    changes = given(await read_body(request, SettingsChange))
    dwell_ms = changes.pop("dwell_ms", None)
    if "zone" in changes:
        check_zone(changes["zone"])
    response = await submitted(SCHEDULER, host, messages.Configure(changes, dwell_ms), caller, request_id)
    await library_service_of(supervisor).timekeeper.tell(host)
    return response


NOT_INSERTED = {
    "REJECTED": "The record is invalid",
    "BANNED": "The artwork is banned; lift the ban to show it",
    "DISABLED": "New artwork is off in the settings of this player",
}
# Without an event these had no effect.
EFFECT_HAS_EVENT = (
    messages.PauseChannel,
    messages.ResumeChannel,
    messages.Lift,
    messages.Pause,
    messages.Resume,
    messages.Prev,
)


def timed(to: int, command: messages.Untimed | None) -> messages.Commands:
    """The one command that advances a player to a time and then does `command`, if there is one."""
    return messages.Advance(to) if command is None else messages.At(to, command)


def check_size(player: Player, command: messages.Commands) -> None:  # noqa: ARG001
    """Refuse many items in one command; the player itself limits how far one `Advance` goes. Raises `TooMuchAtOnce`."""
    if isinstance(command, messages.At):
        command = command.command
    if isinstance(command, messages.Take) and command.n > MOST_TAKEN:
        raise TooMuchAtOnce(
            f"{command.n} items are too many for one command; the limit is {MOST_TAKEN}: take them in several steps",
            asked=command.n,
            allowed=MOST_TAKEN,
        )


def became(command: object, outcome: Outcome[Any]) -> Became:
    """The effect of a command."""
    if isinstance(command, messages.At):
        command = command.command
    if isinstance(command, messages.Insert) and isinstance(outcome.answer, dict):
        result = str(outcome.answer["result"])
        if result in NOT_INSERTED:
            return Became(Effect.REFUSED, [Complaint(result, NOT_INSERTED[result])])
    if isinstance(command, EFFECT_HAS_EVENT) and not outcome.events:
        return Became(Effect.NONE)
    return Became(Effect.DONE)


# State


@router.get(f"{PLAYER}/now", responses=answers(views.PlayerNow), operation_id="playback_now")
async def now(player: PlayerName, supervisor: Supervised, _: Viewer, at: RecordNumber | None = None) -> Response:
    """The current item, lookahead, history and exposure; now or after record `at`."""
    host = supervisor.host(SCHEDULER.name, player)
    if at is None:
        return json_response(encode_view(await host.ask(lambda driver: _now(driver, host, supervisor))))
    return json_response(await supervisor.replayed(lambda: _then(host, at)))


@router.get(f"{PLAYER}/peek", responses=answers(views.PeekView), operation_id="playback_peek")
async def peek(
    player: PlayerName, supervisor: Supervised, _: Viewer, n: Annotated[int, Query(ge=0, le=MOST_PEEKED)] = 10
) -> Response:
    """Up to `n` items of the lookahead; read-only."""
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
    """Why an item of the present epoch was selected; now or as of record `at`."""
    host = supervisor.host(SCHEDULER.name, player)
    return await read_at(supervisor, host, at, lambda engine: encode_view(views.why(_player(engine), ordinal)))


@router.get(f"{PLAYER}/stats", responses=_STATS | refusals(READ_ERRORS), operation_id="playback_stats")
async def stats(player: PlayerName, supervisor: Supervised, _: Viewer) -> Response:
    """Counters over all epochs, and the present epoch."""
    host = supervisor.host(SCHEDULER.name, player)
    return json_response(encode_view(await host.ask(lambda driver: views.stats(_player(driver.engine)))))


def _config(body: NewPlayer, service: LibraryService) -> Json:
    """The configuration of a new player; raises `UnknownChannel`."""
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
    # After a flush the state is durable and that of the last record.
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


def _player(engine: object) -> Player:
    assert isinstance(engine, Player)
    return engine


SCHEDULER = SchedulerSpec(
    name="playback",
    title="Playback",
    sentence="What a display shows next: exact shares for channels, no repeats in a row, new artwork soon.",
    engine=Player,
    demo=DEMO,
    routers=(channel_routes.router, router),
    command_routes=COMMANDS,
    lifecycle=LIFECYCLE,
    prefix=BASE,
    bound=check_size,
    store=LibraryService,
    timed=timed,
    became=became,
    incidents={"diagnosed": event_sentence, "blank": lambda _: "The screen is blank"},
    choices=views.choices,
)
