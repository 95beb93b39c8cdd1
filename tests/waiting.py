"""Waits for threads, children and pipes that fail with a name after `SECONDS`."""

import os
import select
import signal
import time
from threading import Thread
from typing import IO, AnyStr

SECONDS = 240.0  # passing tests need less than a tenth of it, even on a slow machine


def joined(*threads: Thread, seconds: float = SECONDS) -> None:
    """Wait until these threads have ended."""
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    left = [thread.name for thread in threads if thread.is_alive()]
    assert left == [], f"after {seconds:g} s these threads still run"


def status_of(child: int, seconds: float = SECONDS) -> int:
    """The exit status of a child, as from `os.waitpid`; a child that does not end is killed, and the test fails."""
    until = time.monotonic() + seconds
    pause = 0.0005
    while True:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            return status
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"the child {child} did not end within {seconds:g} s")
        time.sleep(pause)
        pause = min(pause * 2, 0.02)


def read(pipe: int, most: int, seconds: float = SECONDS) -> bytes:
    """The next bytes from a pipe, empty at its end."""
    ready, _, _ = select.select([pipe], [], [], seconds)
    assert ready, f"nothing came through the pipe within {seconds:g} s"
    return os.read(pipe, most)


def line_of(stream: IO[AnyStr] | None, seconds: float = SECONDS) -> AnyStr:
    """The first line that a program prints into its pipe."""
    assert stream is not None
    ready, _, _ = select.select([stream], [], [], seconds)
    assert ready, f"the program printed nothing within {seconds:g} s"
    return stream.readline()
