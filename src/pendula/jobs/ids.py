"""Ids of jobs: their numbers in base 32, which sort like the numbers and need no index."""

ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
DIGITS = 12
_AS_PYTHON = str.maketrans(ALPHABET, "0123456789abcdefghijklmnopqrstuv")  # the digits of `int(…, 32)`
_PAIRS = tuple(high + low for high in ALPHABET for low in ALPHABET)


def job_id(seq: int) -> str:
    """The id of the job with this number."""
    # Two digits at a time, since every enqueue makes an id.
    high = f"{_PAIRS[seq >> 50 & 1023]}{_PAIRS[seq >> 40 & 1023]}{_PAIRS[seq >> 30 & 1023]}"
    return f"job_{high}{_PAIRS[seq >> 20 & 1023]}{_PAIRS[seq >> 10 & 1023]}{_PAIRS[seq & 1023]}"


def seq_of(text: str) -> int | None:
    """The number in a job id; None for any other text."""
    if len(text) != DIGITS + len("job_"):
        return None
    try:
        seq = int(text[4:].translate(_AS_PYTHON), 32)
    except ValueError:
        return None
    # `int` accepts more: small letters, blanks, letters outside the alphabet.
    return seq if seq >= 0 and job_id(seq) == text else None
