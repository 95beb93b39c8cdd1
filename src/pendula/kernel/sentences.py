"""Sentences are rendered for display; journals, states and digests contain codes and facts.

`Engine.sentence` renders the sentence of a refusal. An event with a sentence computes it in a property `message`.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from pendula.kernel.canonical import encode
from pendula.kernel.engine import Engine, Refusal

# Raised while rendering a code or facts that this version does not know, as in a journal that was edited.
UNKNOWN = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, msgspec.MsgspecError)


def refusal_sentence(engine: Engine[Any, Any] | type[Engine[Any, Any]], refusal: Refusal) -> str:
    return engine.sentence(refusal.code, refusal.facts)


def stored_sentence(render: Callable[[], str], code: str) -> str:
    """The sentence of a stored code; the code itself if it or its facts cannot be rendered."""
    try:
        return render()
    except UNKNOWN:
        return code


def shown_bytes(event: Any, data: bytes) -> bytes:
    """The canonical bytes of an event, with its sentence, if it has one, as the last member `message`."""
    if not isinstance(getattr(type(event), "message", None), property):
        return data
    separator = b"" if data == b"{}" else b","
    message = stored_sentence(lambda: str(event.message), str(getattr(event, "code", "unknown")))
    return b'%b%b"message":%b}' % (data[:-1], separator, encode(message))


def shown_stored(read: Callable[[bytes], Any], data: bytes) -> bytes:
    """Like `shown_bytes`, for an event of a journal; unchanged if this version cannot read it."""
    try:
        return shown_bytes(read(data), data)
    except UNKNOWN:
        return data
