"""Children of the test process; each exits by itself, so that waiting for it always ends."""

import os
import signal
from collections.abc import Callable

CHILD_SECONDS = 900  # a forked child may inherit a lock that no thread of its own releases


def forked(work: Callable[[], object]) -> int:
    """Run `work` in a child that exits with 0, or with 1 where it raises; return its process id.

    The child never returns into the test runner, whose connection it shares, and is killed after `CHILD_SECONDS`.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(CHILD_SECONDS)
            work()
            code = 0
        finally:
            os._exit(code)
    return child
