"""The reference is what the code is: its pages can be made, and codes are compared both ways."""

import ast
import re
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pendula.server.schedulers.fleet.metrics import FleetMetrics
from scripts import reference
from tests.docs.markdown import ROOT

SOURCE = ROOT / "src/pendula"
# Reading a module into a tree takes long; one without these words has no code.
MAY_HAVE_CODES = re.compile(r"\bcode\b[^,)]*=|\b(?:Limit|Refusal|Reason|_refused)\(")


def sources() -> list[str]:
    """The text of every module that belongs to a package."""
    paths = [path for path in SOURCE.rglob("*.py") if (path.parent / "__init__.py").is_file()]
    return [path.read_text(encoding="utf-8") for path in paths]


def codes_in_the_page() -> set[str]:
    return set(re.findall(r"^\| `([A-Za-z0-9_]+)` \|", reference.codes(), re.MULTILINE))


def codes_in_the_source() -> set[str]:
    """By reading, not by importing: class attributes `code`, limits, faults of documents, refusals and reasons."""
    found: set[str] = set()
    for source in filter(MAY_HAVE_CODES.search, sources()):
        for node in ast.walk(ast.parse(source)):
            match node:
                case ast.ClassDef(body=body):
                    found |= {attribute for statement in body if (attribute := _code_attribute(statement))}
                case ast.Call(func=ast.Name(id="Limit"), args=[_, _, _, ast.Constant(value=str(code)), *_]):
                    found.add(code)
                case ast.Call(
                    func=ast.Name(id="Refusal" | "Reason" | "_refused"), args=[ast.Constant(value=str(code)), *_]
                ):
                    found.add(code)
                case ast.Call(keywords=keywords):
                    found |= {named for keyword in keywords if (named := _code_keyword(keyword))}
    return found


def _code_attribute(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id="code")], value=ast.Constant(value=str(code))):
            return code
        case ast.AnnAssign(target=ast.Name(id="code"), value=ast.Constant(value=str(code))):
            return code
    return None


def _code_keyword(keyword: ast.keyword) -> str | None:
    match keyword:
        case ast.keyword(arg="code", value=ast.Constant(value=str(code))):
            return code
    return None


# The requirements of two schedulers name some of their codes, in forms of their own.
FORMS = {"actions": r"|([A-Z][a-z]+)+", "credit": r"|[A-Z]+(_[A-Z]+)*"}


def test_every_code_of_an_error_is_snake_case_but_those_that_requirements_name() -> None:
    def form(module: str) -> str:
        return "[a-z]+(_[a-z0-9]+)*" + "".join(FORMS.get(part, "") for part in module.split("."))

    assert [kind for kind in reference.error_kinds() if not re.fullmatch(form(kind.__module__), kind.code)] == []


def test_every_code_of_the_source_has_its_line() -> None:
    assert codes_in_the_source() - codes_in_the_page() == set()


def test_every_line_belongs_to_a_code_in_the_source() -> None:
    text = "\n".join(sources())

    assert {code for code in codes_in_the_page() if f'"{code}"' not in text} == set()


def test_every_page_is_written_into_a_folder(tmp_path: Path) -> None:
    assert reference.main([str(tmp_path / "pages")]) == 0

    written = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "pages").iterdir()}
    assert sorted(written) == ["codes.md", "commands.md", "http.md", "limits.md", "settings.md"]
    assert [name for name, text in written.items() if not text.startswith("# ") or len(text.splitlines()) < 20] == []


def test_a_check_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "PAGES", {"limits.md": reference.limits})

    assert reference.main([str(tmp_path / "pages"), "--check"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_code_without_a_line_and_a_line_without_a_code_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = reference.EXPLANATIONS.read_text(encoding="utf-8")
    (tmp_path / "codes.toml").write_text(lines.replace("\nbusy =", "\nbuzy ="), encoding="utf-8")
    monkeypatch.setattr(reference, "EXPLANATIONS", tmp_path / "codes.toml")

    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/reference/codes.toml: no line for busy; no such code as buzy\n"


def test_defaults_of_options_are_in_the_page_of_commands() -> None:
    page = reference.commands()

    assert re.search(r"^\| `--minutes T` \| Simulated minutes of each run\. \| 20 \|$", page, re.MULTILINE)
    assert re.search(r"^\| `--trucks N-M` \| .* \| 1 to all \|$", page, re.MULTILINE)


def test_metrics_of_fleets_are_in_the_page_of_http_under_their_exported_names() -> None:
    registry = CollectorRegistry()
    figures = FleetMetrics(registry, dict)
    figures.ticked("hall", 0.01, [])
    figures.lost("hall", 1.0)
    read = {line.split()[2] for line in generate_latest(registry).decode().splitlines() if line.startswith("# TYPE")}
    page = reference.http()

    assert "pendula_fleet_seconds_lost_total" in read
    told = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert {one for one in read if not one.endswith("_created")} <= told


def test_routes_without_content_list_their_errors() -> None:
    page = reference.http()
    bare = re.findall(r"^- answers 204; refuses with 422$", page, re.MULTILINE)

    assert "### `POST /api/v1/fleet/{fleet}/reports`" in page
    assert bare == []
