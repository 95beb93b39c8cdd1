"""The examples printed in the specifications, if these are beside the checkout."""

import re
from pathlib import Path

import pytest

SPECIFICATIONS = Path(__file__).resolve().parents[3] / "shared" / "seeds"
NUMBERS = {"actions": "000", "jobs": "001", "credit": "002", "playback": "003", "fleet": "004"}
_BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def specification(scheduler: str) -> str:
    """The text of a specification; the test is skipped where it is absent."""
    files = sorted(SPECIFICATIONS.glob(f"{NUMBERS[scheduler]}_*.txt"))
    if not files:
        pytest.skip(f"the specification of {scheduler} is not beside this checkout")
    return files[0].read_text(encoding="utf-8")


def printed(scheduler: str, language: str) -> list[str]:
    """The printed code blocks in `language`, such as "yaml", in the order of the specification."""
    return [block["text"] for block in _BLOCK.finditer(specification(scheduler)) if block["language"] == language]
