"""Ctrl+C where the interpreter looks for it: at the entry of each Python function, and after each call in C."""

import sys
from collections.abc import Callable
from threading import Thread, get_ident
from types import FrameType
from typing import Any

SECONDS = 60


def interrupted_at(n: int, work: Callable[[], object]) -> bool:
    """Whether `work` was interrupted at its `n`-th such place in this thread; False when it ended before."""
    left = n

    def watch(_frame: FrameType, event: str, _what: Any) -> None:
        nonlocal left
        if event in ("call", "c_return"):
            left -= 1
            if left == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(before)
    return left <= 0  # something swallowed it


def everywhere(work: Callable[[], object], after: Callable[[], object], *, step: int = 1) -> int:
    """Interrupt `work` at one place after the other, and each time do `after` in another thread; how many places.

    Fails where `after` does not end.
    """
    me, n = get_ident(), 1
    while interrupted_at(n, work):
        assert get_ident() == me
        follower = Thread(target=after, daemon=True)
        follower.start()
        follower.join(SECONDS)
        assert not follower.is_alive(), f"after an interrupt at place {n} nothing goes on"
        n += step
    return n // step
