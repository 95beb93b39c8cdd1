"""Words and numbers for somebody who reads them."""

import io

import pytest

from pendula.cli.text import per_cent, printable, printable_lines, speak_plainly
from pendula.kernel.wording import counted


def test_what_a_terminal_would_take_for_a_command_is_escaped() -> None:
    assert printable("sea\x1b[2J\n") == "sea\\x1b[2J\\n"


def test_lines_stay_lines() -> None:
    assert printable_lines("one\ntwo\r\n\x07") == "one\ntwo\\r\n\\x07"


def test_letters_of_any_language_stay() -> None:
    assert printable("Hügel – 海") == "Hügel – 海"


@pytest.mark.parametrize(("count", "told"), [(0, "0 items"), (1, "1 item"), (2, "2 items")])
def test_one_thing_has_no_plural(count: int, told: str) -> None:
    assert counted(count, "item") == told


@pytest.mark.parametrize(
    ("part", "whole", "told"), [(1, 3, "33.3 %"), (1, 16, "6.3 %"), (3, 3, "100.0 %"), (0, 0, "–")]
)
def test_a_share_is_told_to_a_tenth_halves_up(part: int, whole: int, told: str) -> None:
    assert per_cent(part, whole) == told


def test_a_stream_that_knows_no_unicode_writes_other_letters() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    speak_plainly(stream)
    stream.write("Öl ──┃█ 50 % …")
    stream.flush()

    assert written.getvalue() == b"\\xd6l --|# 50 % ..."


def test_a_stream_that_knows_unicode_is_left_alone() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    speak_plainly(stream)

    assert stream.errors == "strict"
