"""Real time and keys for a player: the monotonic clock, and a terminal that does not wait for Enter."""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import sleep as sleep_seconds

from pendula.kernel.wallclock import steady_ns
from pendula.playback.player.slideshow import Key

ARROWS = {b"\x1b[C": Key.NEXT, b"\x1b[D": Key.PREV}
LONGEST_SEQUENCE = 16


class LivePace:
    """Real time. Without a keyboard, or after it hangs up, it sleeps."""

    def __init__(
        self,
        keyboard: int | None = None,
        steady_ms: Callable[[], int] = lambda: steady_ns() // 1_000_000,
        sleep: Callable[[float], None] = sleep_seconds,
    ) -> None:
        self._keyboard = keyboard
        self._steady_ms = steady_ms
        self._sleep = sleep
        self._began = steady_ms()

    def now(self) -> int:
        return self._steady_ms() - self._began

    def wait(self, until: int | None) -> str | None:
        seconds = None if until is None else max(0, until - self.now()) / 1000
        if self._keyboard is not None:
            key = self._key(self._keyboard, seconds)
            if key is not None or self._keyboard is not None:
                return key
        if seconds is None:
            return Key.QUIT
        self._sleep(seconds)
        return None

    def _key(self, keyboard: int, seconds: float | None) -> str | None:
        ready, _, _ = select.select([keyboard], [], [], seconds)
        if not ready:
            return None
        pressed = _read(keyboard)
        if not pressed:
            self._keyboard = None  # the terminal hung up
            return None
        return ARROWS.get(pressed) or pressed[:1].decode("ascii", "replace").lower()


def _read(keyboard: int) -> bytes:
    """One key: a byte, or the sequence of an arrow."""
    try:
        pressed = os.read(keyboard, 1)
        if pressed == b"\x1b" and select.select([keyboard], [], [], 0)[0]:
            pressed += os.read(keyboard, LONGEST_SEQUENCE)
    except OSError:
        return b""
    return pressed


@contextmanager
def keys() -> Iterator[int | None]:
    """The keyboard, key by key, without echo; None if stdin is not a terminal. Restores the terminal."""
    if not sys.stdin.isatty():
        yield None
        return
    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    try:
        # Keeps keys that were typed already; Ctrl+C still interrupts.
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        yield keyboard
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
