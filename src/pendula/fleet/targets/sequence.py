"""Numbers of commands: they rise strictly for each truck, and an older one never replaces a newer."""


def following(last: int) -> int:
    """The number of the next command."""
    return last + 1


def acknowledged(seq: int, last_ack: int) -> bool:
    """Whether a truck has taken up a command: this one, or a later one that replaced it."""
    return last_ack >= seq


def newer(seq: int, last: int) -> bool:
    """Whether a gateway takes a command up; the same one twice changes nothing."""
    return seq > last
