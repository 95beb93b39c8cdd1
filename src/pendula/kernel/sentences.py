"""Sentences are rendered where an outcome is shown; journals, states and digests hold codes and facts.

A refusal gets its sentence from `Engine.sentence`. An event that has one computes it in a property called `message`.
"""

from typing import Any

from pendula.kernel.canonical import encode
from pendula.kernel.engine import Engine, Refusal


def refusal_sentence(engine: Engine[Any, Any] | type[Engine[Any, Any]], refusal: Refusal) -> str:
    return engine.sentence(refusal.code, refusal.facts)


def shown_bytes(event: Any, data: bytes) -> bytes:
    """The canonical bytes of an event, with its sentence as the last member `message` where it has one."""
    if not isinstance(getattr(type(event), "message", None), property):
        return data
    separator = b"" if data == b"{}" else b","
    return b'%b%b"message":%b}' % (data[:-1], separator, encode(str(event.message)))
