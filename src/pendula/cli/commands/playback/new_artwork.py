"""The MQTT options of `playback play` and `playback run`."""

import os
from typing import TYPE_CHECKING, Annotated

import typer

from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.playback.sources.mqtt import Address

PASSWORD = "PENDULA_MQTT_PASSWORD"

MqttOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help=f"Receive new artwork from a broker: mqtt://user@host:1883/prefix, the password in {PASSWORD}.",
        show_default=False,
    ),
]
PlayerOption = Annotated[
    str | None,
    typer.Option(metavar="KEY", help="The player in the topic PREFIX/player/KEY/new-artwork.", show_default=False),
]


def address_of(url: str | None, player: str | None) -> "tuple[Address, str] | None":
    """Broker, prefix and player key; None without --mqtt."""
    if url is None and player is None:
        return None
    if url is None or player is None:
        raise WrongUsage("--mqtt (broker and prefix) and --player (the key of the player) must be given together")
    from pendula.playback.sources.mqtt import read_address, require_library, topic_of

    address = read_address(url, os.environ.get(PASSWORD))
    topic_of(address.prefix, player)
    require_library()
    return address, player
