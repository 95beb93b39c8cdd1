"""Runs an engine in a separate process and prints the fingerprint of its run.

`engine_contract` starts it with other hash seeds: `python -m pendula.testing.elsewhere < message`.
"""

import importlib
import sys
from decimal import Decimal

import msgspec
from msgspec import Raw, Struct

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Answer, CommandReader, Recorded
from pendula.kernel.frames import outcome_bytes


class Message(Struct):
    engine: str
    config: Json
    commands: list[Raw]
    answers: list[list[Answer]]
    path: list[str]


def main() -> None:
    from pendula.testing.contract import Trace, fingerprint

    message = msgspec.json.Decoder(Message, float_hook=Decimal).decode(sys.stdin.buffer.read())
    sys.path[:] = message.path
    module, _, name = message.engine.partition(":")
    kind = importlib.import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    engine = kind.create(message.config)
    read_command = CommandReader[object](type(engine))
    outcomes, states = [], []
    for raw, answers in zip(message.commands, message.answers, strict=True):
        engine.outside = Recorded(answers)
        outcomes.append(outcome_bytes(engine.apply(read_command(raw))).whole())
        states.append(engine.state())
    sys.stdout.write(fingerprint(Trace(tuple(outcomes), tuple(states), ())) + "\n")


if __name__ == "__main__":
    main()
