"""Printable text and numbers. Imports neither typer nor rich, since errors are printed with it, too."""

import codecs
from typing import TextIO

PLAIN_LETTERS = "pendula-plain-letters"
# Replacements of drawing characters for terminals and pipes without Unicode.
_DRAWN = str.maketrans(
    dict.fromkeys("─━┄╌", "-")
    | dict.fromkeys("│┃╎", "|")
    | dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+")
    | {"█": "#", "·": ".", "…": "...", "→": "->", "–": "-", "≥": ">=", "≤": "<=", "×": "x", "’": "'"}
)


def speak_plainly(stream: TextIO) -> None:
    """Make a stream replace characters that its encoding lacks, instead of failing."""
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
    """One line with terminal control characters escaped, since names come from files."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def printable_lines(text: str) -> str:
    """Like `printable`, for a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def per_cent(part: int, whole: int) -> str:
    """A percentage with one decimal, halves rounded up, in integers; a dash if `whole` is 0."""
    if not whole:
        return "–"
    tenths = (2000 * part + whole) // (2 * whole)
    return f"{tenths // 10}.{tenths % 10} %"
