"""What beginners paste is taken by the plain interpreter of every supported Python that is at hand.

The Python of the tests runs each block (`test_examples`). Others may lack the packages: they read every block line by
line, as their prompt does, and say what they would not take.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.docs.markdown import pages
from tests.docs.running import blocks_of, is_for_beginners

VERSIONS = ("3.11", "3.12", "3.13")
# A prompt takes a statement when it is whole; one with an indented part ends with an empty line.
READER = """
import codeop, json, sys
wrong = []
for place, text in json.load(sys.stdin):
    read, statement = codeop.CommandCompiler(), ""
    try:
        for line in (*text.split("\\n"), ""):
            statement += line + "\\n"
            if read(statement[:-1], place, "single") is not None:
                statement = ""
    except SyntaxError as error:
        wrong.append(f"{place}: {error!r}")
    else:
        if statement.strip():
            wrong.append(f"{place}: the prompt waits for the end of {statement!r}")
print(json.dumps(wrong))
"""


def interpreter(version: str) -> str:
    """A Python of this version that runs; skips the test where there is none."""
    name = f"python{version}"
    versions = Path(os.environ.get("PYENV_ROOT", "/nonexistent")) / "versions"
    for found in (shutil.which(name), *map(str, sorted(versions.glob(f"{version}.*/bin/{name}")))):
        # What lies on the path may be a name for many versions, of which this one is switched off.
        if found is not None and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
            return found
    pytest.skip(f"there is no {name} here")


def refused(version: str, pasted: Sequence[tuple[str, str]]) -> list[str]:
    command = [interpreter(version), "-I", "-c", READER]
    said = subprocess.run(command, input=json.dumps(pasted), capture_output=True, text=True, check=True).stdout
    found: list[str] = json.loads(said)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_every_block_for_beginners_can_be_pasted(version: str) -> None:
    found = [block for page in filter(is_for_beginners, pages()) for block in blocks_of(page)]
    pasted = [(block.place, block.text) for block in found if block.language == "python" and not block.option]

    assert len(pasted) > 20
    assert refused(version, pasted) == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("for n in (1, 2):\n    m = n\nprint(m)\n", "SyntaxError"),
        ("def f():\n    x = 1\n\n    return x\n", "IndentationError"),
        ("values = [\n    1,\n", "the prompt waits for the end"),
    ],
    ids=["no empty line after a loop", "an empty line in a function", "an open bracket"],
)
def test_a_block_that_a_prompt_rejects_is_reported(version: str, text: str, why: str) -> None:
    [told] = refused(version, [("page.md:2", text)])

    assert told.startswith("page.md:2: ")
    assert why in told
