"""Docs and examples import from packages, never from modules inside them; so do demos, and from a scheduler's root."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.source import ROOT, SCHEDULERS, SOURCE, modules
from tests.docs.markdown import blocks, pages


def taught() -> Iterator[tuple[str, str]]:
    """Every import of Pendula in docs and examples, with its place."""
    for page in pages():
        for block in blocks(page, (ROOT / page).read_text(encoding="utf-8")):
            if block.language == "python":
                yield from _imports(block.place, block.text)
    for file in sorted((ROOT / "examples").rglob("*.py")):
        yield from _imports(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))


def _imports(place: str, text: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "pendula":
            yield place, node.module
        if isinstance(node, ast.Import):
            yield from ((place, name.name) for name in node.names if name.name.split(".")[0] == "pendula")


def is_package(name: str) -> bool:
    return (SOURCE.parent / Path(*name.split("."))).is_dir()


def is_open(name: str) -> bool:
    """The kernel is small and flat: its modules are its public names, and so are those at the root of a scheduler."""
    parent = name.rpartition(".")[0].removeprefix("pendula.")
    return is_package(name) or parent in ("kernel", *SCHEDULERS)


def test_docs_and_examples_import_from_packages() -> None:
    found = list(taught())

    assert [f"{place}: {name}" for place, name in found if not is_open(name)] == []
    assert len(found) > 50


def is_at_a_root(name: str) -> bool:
    """Packages, and the modules that every scheduler has at its root, such as `model` and `engine`."""
    return is_open(name) or name.count(".") == 2


def test_demos_import_no_module_inside_a_scheduler() -> None:
    found = [
        imported
        for path in modules(SOURCE / "demo")
        for imported in _imports(path.name, path.read_text(encoding="utf-8"))
    ]

    assert [f"{place}: {name}" for place, name in found if not is_at_a_root(name)] == []
    assert not is_at_a_root("pendula.jobs.calls.finish")


def test_an_import_from_a_module_is_found() -> None:
    assert not is_open("pendula.credit.ledger.book")
