"""Memory that is not used any more goes back to the system: of itself, the C library keeps it.

Every thread gets an arena of its own, and each keeps the most it ever needed; with a thread an engine and threads for
the past, a server under load grew by ten megabytes a minute while what it used stood still. Two arenas are enough for
an interpreter in which one thread runs at a time. Where the C library is another one, nothing is done.
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
    """Before threads are made; whether the C library can be told."""
    library = _library()
    return library is not None and library.mallopt(M_ARENA_MAX, ARENAS) == 1


def give_back() -> None:
    """Let go of what is free. Other threads run on meanwhile."""
    library = _library()
    if library is not None:
        library.malloc_trim(0)
