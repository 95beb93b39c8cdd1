"""Words and numbers in readable form."""

import io

import pytest

from pendula.cli.text import per_cent, printable, printable_lines, speak_plainly
from pendula.kernel.wording import counted


def test_terminal_control_sequences_are_escaped() -> None:
    assert printable("sea\x1b[2J\n") == "sea\\x1b[2J\\n"


def test_line_breaks_are_preserved() -> None:
    assert printable_lines("one\ntwo\r\n\x07") == "one\ntwo\\r\n\\x07"


def test_letters_of_any_language_are_preserved() -> None:
    assert printable("Hügel – 海") == "Hügel – 海"


@pytest.mark.parametrize(("count", "text"), [(0, "0 items"), (1, "1 item"), (2, "2 items")])
def test_one_thing_has_no_plural(count: int, text: str) -> None:
    assert counted(count, "item") == text


@pytest.mark.parametrize(
    ("part", "whole", "text"), [(1, 3, "33.3 %"), (1, 16, "6.3 %"), (3, 3, "100.0 %"), (0, 0, "–")]
)
def test_a_share_is_rounded_half_up_to_a_tenth(part: int, whole: int, text: str) -> None:
    assert per_cent(part, whole) == text


def test_a_stream_without_unicode_writes_substitutes() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    speak_plainly(stream)
    stream.write("Öl ──┃█ 50 % …")
    stream.flush()

    assert written.getvalue() == b"\\xd6l --|# 50 % ..."


def test_a_stream_with_unicode_is_unchanged() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    speak_plainly(stream)

    assert stream.errors == "strict"
