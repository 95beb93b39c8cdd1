"""Command numbers: strictly increasing for each truck; an older command never replaces a newer one."""


def following(last: int) -> int:
    """The number of the next command."""
    return last + 1


def acknowledged(seq: int, last_ack: int) -> bool:
    """Whether a truck has acknowledged a command, or a later one that replaced it."""
    return last_ack >= seq


def newer(seq: int, last: int) -> bool:
    """Whether a gateway accepts a command; a repeated one changes nothing."""
    return seq > last
