"""What the hooks add to the documentation site and take away; the strict build itself is a part of `./test lint`."""

import base64
import hashlib
import importlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from scripts import docs_hooks
from tests.docs.markdown import GENERATED, ROOT, pages

SITE = ROOT / "src/pendula/server/page/docs"


def test_blocks_keep_their_language_and_the_name_of_their_file() -> None:
    page = (
        "```sh no-run: needs a broker\n$ x\n```\n"
        "```yaml file=day.yaml\na: 1\n```\n"
        "```console background\n$ y\n```\n"
        "```text\nz\n```\n"
    )

    heads = [line for line in docs_hooks.plain_fences(page).splitlines() if line.startswith("```") and line != "```"]

    assert heads == ["```sh", '```yaml title="day.yaml"', "```console", "```text"]


def test_links_out_of_the_documentation_become_text() -> None:
    page = "[a test](../../tests/x.py), [a page](../reference/codes.md#busy), ![a picture](../pictures/a.webp)"

    assert docs_hooks.within_docs(page, "how-to/serve.md") == page.replace("[a test](../../tests/x.py)", "a test")


def test_scripts_have_hashes_and_data_has_none() -> None:
    page = '<script>let a</script><script src="b.js"></script><script id="c" type="application/json">{}</script>'
    digest = base64.b64encode(hashlib.sha256(b"let a").digest()).decode()

    assert list(docs_hooks.script_hashes(page)) == [f"sha256-{digest}"]


@pytest.mark.parametrize("package", docs_hooks.PACKAGES)
def test_the_python_reference_has_every_public_name(package: str) -> None:
    module = importlib.import_module(f"pendula.{package}")
    page = docs_hooks.python_page(f"pendula.{package}")

    assert re.findall(rf"^::: pendula\.{package}\.(\w+)$", page, re.MULTILINE) == list(module.__all__)


@pytest.mark.campaign
def test_generated_pages_are_known_to_the_link_check_and_not_committed() -> None:
    assert {f"docs/{path}" for path in docs_hooks.generated()} == GENERATED
    assert [name for name in GENERATED if (ROOT / name).exists()] == []


def test_every_page_is_in_the_navigation_once() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    listed = re.findall(r"^ +- (\S+\.md)$", navigation, re.MULTILINE)

    of_docs = {path.relative_to("docs").as_posix() for path in pages() if path.parts[0] == "docs"}
    assert sorted(listed) == sorted(of_docs | {name.removeprefix("docs/") for name in GENERATED})


def built() -> Path:
    if not (SITE / "index.html").is_file():
        pytest.skip("the documentation is not built; scripts/setup builds it")
    return SITE


def test_the_built_site_has_no_marks_of_tests_and_loads_nothing_from_other_hosts() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in built().rglob("*.html")}

    assert len(texts) > 100
    # This page is about the marks themselves.
    about = built() / "decisions/010-documentation-site.html"
    assert [path for path, text in texts.items() if "no-run:" in text and path != about] == []
    fetched = re.compile(r'(?:<script[^>]* src|<link[^>]* href|<img[^>]* src)="?(?:https?:)?//')
    assert [path for path, text in texts.items() if fetched.search(text)] == []
    assert [path for path, text in texts.items() if re.search(r"<style|<[^<>]* style=", text)] == []


def test_the_hashes_of_the_built_site_are_those_of_its_scripts() -> None:
    listed = json.loads((built() / docs_hooks.HASHES).read_text(encoding="utf-8"))
    texts = [path.read_text(encoding="utf-8") for path in built().rglob("*.html")]

    assert listed == sorted({one for text in texts for one in docs_hooks.script_hashes(text)})


def test_a_folder_with_other_files_is_not_emptied(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("keep")

    ended = subprocess.run([ROOT / "scripts/docs", tmp_path], capture_output=True, text=True, check=False)

    assert ended.returncode == 2
    assert "holds something else than the site" in ended.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


@pytest.mark.long  # the part lint of ./test builds it, too
def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    root = tmp_path / "checkout"
    for name in ("docs", "scripts", "src", "tests"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("page", "__pycache__"))
    for name in ("mkdocs.yml", "pyproject.toml", "web/public/favicon.svg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / ".venv").symlink_to(ROOT / ".venv")
    page = root / "docs/how-to/serve-a-world.md"
    page.write_text(page.read_text(encoding="utf-8") + "\n[gone](../reference/codes.md#no-such-heading)\n")

    ended = subprocess.run([root / "scripts/docs"], capture_output=True, text=True, check=False)

    assert ended.returncode != 0
    assert "no-such-heading" in ended.stderr
