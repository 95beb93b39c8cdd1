"""The tree is the architecture: the same files at the root of every scheduler, modules in packages."""

import ast

from tests.architecture.source import ROOT, SCHEDULERS, SOURCE, members, modules, named, packages, tree

ENGINE_SCHEDULERS = ("actions", "credit", "playback")
ROOT_FILES = {"model", "engine", "saving", "explain"}


def test_every_scheduler_with_an_engine_has_the_same_files_at_its_root() -> None:
    missing = {scheduler: sorted(ROOT_FILES - set(members(SOURCE / scheduler))) for scheduler in ENGINE_SCHEDULERS}
    no_messages = [name for name in ENGINE_SCHEDULERS if not {"messages", "events"} & set(members(SOURCE / name))]

    assert missing == {scheduler: [] for scheduler in ENGINE_SCHEDULERS}
    assert no_messages == []


def test_every_scheduler_has_its_nouns_in_model() -> None:
    assert [scheduler for scheduler in SCHEDULERS if "model" not in members(SOURCE / scheduler)] == []


def test_every_folder_with_a_module_is_a_package() -> None:
    folders = {path.parent for path in modules()}

    assert [named(folder) for folder in sorted(folders) if not (folder / "__init__.py").is_file()] == []


def test_no_command_is_written_in_an_init() -> None:
    found = [
        f"{named(path)}/__init__.py: {node.name}"
        for path in packages()
        if path.is_relative_to(SOURCE / "cli/commands")
        for node in ast.walk(tree(path / "__init__.py"))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    assert found == []


def test_test_files_are_named_after_their_subjects() -> None:
    words = ("mended", "edges", "misc", "various", "more", "review")

    assert [path.name for path in (ROOT / "tests").rglob("test_*.py") if path.stem.removeprefix("test_") in words] == []
