"""Returns unused memory to the system, which glibc does not do by itself.

glibc gives every thread an arena that keeps its maximum size; with one thread per engine and threads for past reads, a
server under load grew by ten megabytes a minute without using more. Two arenas are enough for an interpreter that runs
one thread at a time. With another C library this does nothing.
"""

import ctypes
from typing import Any

M_ARENA_MAX = -8
ARENAS = 2
GIVE_BACK_SECONDS = 30.0


def _library() -> Any:
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None
    except (OSError, TypeError):
        return None


def keep_few_arenas() -> bool:
    """Limit the number of arenas; call before starting threads. False if the C library does not support it."""
    library = _library()
    return library is not None and library.mallopt(M_ARENA_MAX, ARENAS) == 1


def give_back() -> None:
    """Return free memory to the system; other threads continue meanwhile."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)
