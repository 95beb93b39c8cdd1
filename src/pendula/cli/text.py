"""Words and numbers for somebody who reads them. Knows neither typer nor rich: errors are told with it too."""

import codecs
from typing import TextIO

PLAIN_LETTERS = "pendula-plain-letters"
# What tables, trees and sentences are drawn with, for terminals and pipes that know no Unicode.
_DRAWN = str.maketrans(
    dict.fromkeys("─━┄╌", "-")
    | dict.fromkeys("│┃╎", "|")
    | dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+")
    | {"█": "#", "·": ".", "…": "...", "→": "->", "–": "-", "≥": ">=", "≤": "<=", "×": "x", "’": "'"}
)


def speak_plainly(stream: TextIO) -> None:
    """Lets a stream that cannot write every letter write others in their place, instead of nothing at all."""
    encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("_", "-")
    if not encoding.startswith("utf-") and hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=PLAIN_LETTERS)


def _in_plain_letters(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    wanted = error.object[error.start : error.end].translate(_DRAWN)
    return wanted.encode("ascii", "backslashreplace").decode(), error.end


codecs.register_error(PLAIN_LETTERS, _in_plain_letters)


def printable(text: str) -> str:
    """One line that a terminal shows as it is: names come from files, and what would be a command is escaped."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines, which stay lines."""
    return "\n".join(map(printable, text.split("\n")))


def per_cent(part: int, whole: int) -> str:
    """To a tenth, halves up, in integers; a dash where there is no whole."""
    if not whole:
        return "–"
    tenths = (2000 * part + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10} %"
