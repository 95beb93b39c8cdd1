"""Sentences are rendered for display; journals, states and digests contain codes and facts.

`Engine.sentence` renders the sentence of a refusal. An event with a sentence computes it in a property `message`.
"""

from typing import Any

from pendula.kernel.canonical import encode
from pendula.kernel.engine import Engine, Refusal


def refusal_sentence(engine: Engine[Any, Any] | type[Engine[Any, Any]], refusal: Refusal) -> str:
    return engine.sentence(refusal.code, refusal.facts)


def shown_bytes(event: Any, data: bytes) -> bytes:
    """The canonical bytes of an event, with its sentence, if it has one, as the last member `message`."""
    if not isinstance(getattr(type(event), "message", None), property):
        return data
    separator = b"" if data == b"{}" else b","
    return b'%b%b"message":%b}' % (data[:-1], separator, encode(str(event.message)))
