"""Ids of jobs and events: numbers in disguise, which sort as the numbers do and are found without an index."""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DIGITS = 12
_VALUES = {digit: value for value, digit in enumerate(ALPHABET)}
_PAIRS = tuple(high + low for high in ALPHABET for low in ALPHABET)


def job_id(seq: int) -> str:
    """The id of the job with this number."""
    # Two digits at a time: every enqueue asks for an id.
    high = f"{_PAIRS[seq >> 50 & 1023]}{_PAIRS[seq >> 40 & 1023]}{_PAIRS[seq >> 30 & 1023]}"
    return f"job_{high}{_PAIRS[seq >> 20 & 1023]}{_PAIRS[seq >> 10 & 1023]}{_PAIRS[seq & 1023]}"


def seq_of(job_id: str) -> int | None:
    """The number in an id of ours; None for what is none."""
    digits = job_id.removeprefix("job_")
    if len(digits) != DIGITS or len(job_id) != DIGITS + len("job_"):
        return None
    seq = 0
    for digit in digits:
        value = _VALUES.get(digit)
        if value is None:
            return None
        seq = seq * 32 + value
    return seq
