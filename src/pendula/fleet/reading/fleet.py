"""Reader of fleet documents: trucks, the streams of goods they serve, and the lookahead."""

from pendula.documents import Cursor, Document
from pendula.fleet.model import Fleet, Stream, Truck
from pendula.fleet.reading.values import drop_of, length, name

FLEET_MEMBERS = ("robots", "streams", "params")
FLEET_PARAMS = ("lookaheadM", "rtpLookaheadM", "tickPeriodMs", "arriveTolM")


def read_fleet(document: Document) -> Fleet:
    """The fleet of a document; raises `DocumentRefused`."""
    return document.read(_fleet)


def _fleet(root: Cursor) -> Fleet:
    members = root.object(required=("robots",), optional=("streams", "params"), unknown="keep")
    usual = Fleet(())
    given = members["params"].unless_null()
    limits = (given if given.given else root).object(optional=FLEET_PARAMS, unknown="keep")
    return Fleet(
        members["robots"].list_of(_truck),
        members["streams"].unless_null().list_of(_stream, default=()),
        length(limits["lookaheadM"]) if "lookaheadM" in limits else usual.lookahead_um,
        length(limits["rtpLookaheadM"]) if "rtpLookaheadM" in limits else usual.rtp_lookahead_um,
        limits["tickPeriodMs"].integer(min=1) if "tickPeriodMs" in limits else usual.tick_ms,
        length(limits["arriveTolM"]) if "arriveTolM" in limits else usual.arrive_tol_um,
    )


def _truck(at: Cursor) -> Truck:
    members = at.object(required=("robotId", "profileId", "parkNodeId"), unknown="keep")
    return Truck(name(members["robotId"]), name(members["profileId"]), name(members["parkNodeId"]))


def _stream(at: Cursor) -> Stream:
    members = at.object(required=("streamId", "pickNodeIds", "dropNodeIds"), optional=("robotIds",), unknown="keep")
    stream_id, picks = name(members["streamId"]), members["pickNodeIds"].list_of(name)
    return Stream(
        stream_id,
        picks,
        members["dropNodeIds"].list_of(lambda drop: drop_of(drop, picks, f"stream {stream_id!r}")),
        members["robotIds"].unless_null().list_of(name, default=()),
    )
