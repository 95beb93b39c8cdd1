"""Words and numbers for somebody who reads them. Knows neither typer nor rich: errors are told with it too."""


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
