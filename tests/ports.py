"""A port that stays free, for a server that needs its port before it starts."""

import socket
from random import SystemRandom

# Below the ephemeral ports of systems, so that no other program takes it while the server is down.
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
