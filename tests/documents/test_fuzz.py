"""Hostile bytes: whatever comes in, a value or one refusal comes out, and the refusal can be printed and sent."""

from random import Random

import pytest

from pendula.documents import CODES, Cursor, DocumentRefused, Format, read_bytes
from pendula.kernel import canonical

SAMPLES = (
    b'{"epoch": {"index": 0, "start_at": "2025-07-01T00:00:00"}, "defs": [1, -2.5e3, true, null, "\\ud83d\\ude00\\n"]}',
    '{"é": ["😀", {"a": {"b": [[], {}, ""]}}], "n": 123456789012345678901234567890}'.encode(),
    b"epoch: {index: 0, at: 2025-07-01T00:00:00}\ndefs: &d\n  - 1\n  - [a, 'b', \"c\\n\"]\nagain: *d\n? x\n: |\n  t\n",
    "a: &x {b: [1, 2.5, ~, no]}\nc: *x\n'd e': >-\n  é😀\n  x\n# end\n".encode(),
)
MARKS = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    '"',
    "'",
    "\\",
    "|",
    ">",
    "#",
    "//",
    "/*",
    "@",
    "`",
    "~",
    "?",
    "-",
    "&",
    "*",
    "!",
    "%",
    "<<:",
    "NaN",
    "\\ud800",
    "\\U00110000",
    "1e9999999",
]
SPACES = [
    "\n",
    "\t",
    "\r",
    " ",
    "\x00",
    "\ufeff",
    "\u2028",
    "- ",
    "? ",
    "&x ",
    "*x ",
    "!!t ",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
]
HUGE = ["[" * 300, '{"a":' * 200, "9" * 5000]
SCRAPS = [*(scrap.encode() for scrap in [*MARKS, *SPACES, *HUGE]), b"\xff", b"\xc3"]

REPEATED = [
    *(scrap.encode() for scrap in [*MARKS, *SPACES]),
    b"\x01",
    b"\x7f",
    b"\x85",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
]


def hostile(seed: int) -> bytes:
    """Random bytes, or a sound document with a few changes."""
    random = Random(seed)
    if random.random() < 0.2:
        return random.randbytes(random.randrange(60))
    data = bytearray(random.choice(SAMPLES))
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(data) + 1)
        match random.randrange(4):
            case 0:
                data[at:at] = random.choice(SCRAPS)
            case 1:
                del data[at : at + random.randrange(1, 8)]
            case 2:
                data[at : at + 1] = random.randbytes(1)
            case _:
                data[at:at] = data[at : at + random.randrange(1, 20)]
    return bytes(data)


def anything(at: Cursor) -> None:
    """Reads everything as the wrong kind, so that every value gets a fault with a place."""
    if at.is_object:
        at.map_of(anything)
        at.object(optional=["a"])
    elif at.is_list:
        at.list_of(anything)
    else:
        at.boolean()


def refusal(data: bytes, form: Format) -> DocumentRefused | None:
    try:
        document = read_bytes(data, form)
        canonical.encode(document.value)
        document.read(anything)
    except DocumentRefused as refused:
        return refused
    return None


def check(data: bytes) -> None:
    for form in Format:
        refused = refusal(data, form)
        if refused is not None:
            assert {fault.code for fault in refused.faults} <= CODES.keys()
            assert all(fault.line >= 1 and fault.column >= 1 for fault in refused.faults)
            places = [(fault.line, fault.column) for fault in refused.faults]
            assert places == sorted(places)
            assert refused.render().encode()
            assert canonical.encode(refused.details)


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_hostile_inputs_give_a_value_or_a_refusal(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        check(hostile(seed))


@pytest.mark.parametrize("before", [b"", b"a: ", b'["', b"[", b"--- 1\n...\n"])
@pytest.mark.parametrize("scrap", REPEATED, ids=repr)
def test_a_token_repeated_thirty_thousand_times_gives_a_value_or_a_refusal(before: bytes, scrap: bytes) -> None:
    check(before + scrap * 30_000)


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_ten_thousand_hostile_inputs_give_a_value_or_a_refusal(block: int) -> None:
    for seed in range(1000 + block * 1000, 2000 + block * 1000):
        check(hostile(seed))
