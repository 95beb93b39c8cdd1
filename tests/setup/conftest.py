"""Checkouts to set up: a small one that needs no network, and copies of this one."""

import os
import shutil
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MADE_HERE = shutil.ignore_patterns(
    ".git", ".venv", ".pendula", "build", "node_modules", "page", "types.ts", "__pycache__", ".*_cache"
)

# A build backend without dependencies: its project installs where no index can be reached.
BACKEND = """
    import pathlib, zipfile

    FILES = {
        "pendula.pth": f"{pathlib.Path.cwd() / 'src'}\\n",
        "pendula-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: pendula\\nVersion: 1\\n",
        "pendula-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        "pendula-1.dist-info/entry_points.txt": "[console_scripts]\\npendula = pendula:main\\n",
    }

    def build_editable(folder, config_settings=None, metadata_directory=None):
        record = "".join(f"{name},,\\n" for name in [*FILES, "pendula-1.dist-info/RECORD"])
        with zipfile.ZipFile(pathlib.Path(folder, "pendula-1-py3-none-any.whl"), "w") as wheel:
            for name, text in {**FILES, "pendula-1.dist-info/RECORD": record}.items():
                wheel.writestr(name, text)
        return "pendula-1-py3-none-any.whl"
"""
SMALL_PROJECT = {
    "requirements.lock": "",
    "requirements-test.lock": "",
    "backend.py": BACKEND,
    "pyproject.toml": """
        [build-system]
        requires = []
        build-backend = "backend"
        backend-path = ["."]
        [project]
        name = "pendula"
        version = "1"
    """,
    "src/pendula/__init__.py": """
        import sys

        def main():
            print("served with", *sys.argv[1:])
    """,
}


def without_uv(environ: dict[str, str]) -> dict[str, str]:
    """The same environment without uv on the path."""
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    return {**environ, "PATH": os.pathsep.join(folder for folder in folders if not Path(folder, "uv").exists())}


def copy_of_checkout(place: Path) -> Path:
    """This checkout as a tarball would give it: no .git, nothing that set-up makes."""
    return Path(shutil.copytree(ROOT, place, ignore=MADE_HERE, symlinks=True))


@pytest.fixture
def small_checkout(tmp_path: Path) -> Path:
    """This checkout's way of setting up around a project without dependencies, in a path with a space."""
    root = tmp_path / "a checkout"
    shutil.copytree(ROOT / "scripts", root / "scripts", ignore=MADE_HERE)
    for name in ("run", "test"):
        shutil.copy(ROOT / name, root / name)
    for name, text in SMALL_PROJECT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(textwrap.dedent(text))
    return root
