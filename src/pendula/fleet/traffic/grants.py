"""The only functions that change who holds what: routes accepted, units granted, resources released, trucks frozen.

Each keeps the promise of FLT-LIVE-4: afterwards a complete schedule that brings everybody to rest is stored as the
state's witness, or nothing was changed and the answer says why.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from pendula.fleet.traffic.demand import Demand
from pendula.fleet.traffic.lock_state import LockState


class Wait(StrEnum):
    """Why a unit is not granted: somebody holds what excludes it, or afterwards not everybody could get to rest."""

    HELD = "HELD"
    SAFE_STATE = "WAIT_SAFE_STATE"
    CUT_OFF = "CUT_OFF"
    AT_REST = "AT_REST"


@dataclass(frozen=True, slots=True)
class Accepted:
    """A route in force."""


@dataclass(frozen=True, slots=True)
class RouteRefused:
    """The old route stays in force. `cycle`: trucks of which each is blocked by the next, the last by the first."""

    cycle: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Granted:
    position: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """The first resource on the way that is not to be had, and who holds what excludes it; for WAIT_SAFE_STATE the
    next truck of the cycle first, and the whole cycle."""

    code: Wait
    resource: int | None = None
    trucks: tuple[int, ...] = ()
    cycle: tuple[int, ...] = ()


def accept_route(state: LockState, i: int, demand: Demand, position: int = 0) -> Accepted | RouteRefused:
    """A new or changed way of truck i; `position` is where its grant ends on it. A truck that is not known yet begins
    there, holding row 0."""
    raise NotImplementedError


def extend(state: LockState, i: int) -> Granted | Blocked:
    """The next unit of truck i, up to its next standing position."""
    raise NotImplementedError


def release(state: LockState, i: int, resources: list[int]) -> None:
    """What truck i has passed or retracted; the caller decides by FLT-RES-13. What it stands on at the end of its grant
    or still has to pass there is not released."""
    raise NotImplementedError


def freeze(state: LockState, i: int, extra: list[int]) -> None:
    """Truck i has failed: it keeps what it holds and whatever else it may cover, and needs nothing."""
    raise NotImplementedError


def thaw(state: LockState, i: int, demand: Demand, position: int) -> Accepted | RouteRefused:
    """Truck i is back, on a way that starts where it stands."""
    raise NotImplementedError
