"""A port that is free now and stays so, for a server that has to be told its port before it starts."""

import socket
from random import SystemRandom

# Below those that systems give out by themselves: nothing else takes it while a server is down or not yet up.
PORTS = range(10_000, 32_000)


def free_port() -> int:
    choose = SystemRandom()
    while True:
        port = choose.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
