"""Writes the reference pages that are generated from the code: codes, limits, commands, settings, HTTP.

    python scripts/reference.py [FOLDER]   write the pages into build/reference, or FOLDER
    python scripts/reference.py --check    write nothing; fail when a page cannot be made

The pages are not committed: the build of the documentation site (scripts/docs_hooks.py) makes them.
docs/reference/codes.toml explains each code in a line; a code without a line and a line without a code are faults.
"""

import argparse
import ast
import importlib
import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

from prometheus_client import CollectorRegistry

import pendula
from pendula.cli.failing import MEANINGS
from pendula.kernel.limits import ALL, Limit

ROOT = Path(__file__).resolve().parent.parent
EXPLANATIONS = ROOT / "docs/reference/codes.toml"
# Calls whose first argument is the code of a refusal, a reason or a diagnostic.
REFUSING = frozenset(
    {"Caution", "Refusal", "Reason", "Diagnostic", "warn", "_diagnostic", "_refused", "diagnostic", "_tell"}
)


class Unexplained(Exception):
    """Codes without a line, or lines without a code."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/reference.py", description="Writes generated reference pages.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build/reference", help="where to write")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page cannot be made")
    options = parser.parse_args(arguments)
    try:
        pages = {name: write() for name, write in PAGES.items()}
    except Unexplained as fault:
        print(f"docs/reference/codes.toml: {fault}", file=sys.stderr)
        return 1
    if not options.check:
        options.folder.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            (options.folder / name).write_text(text, encoding="utf-8")
    return 0


def page(title: str, intro: str, parts: Iterable[str]) -> str:
    return "\n".join([f"# {title}", "", intro, "", *parts]).rstrip() + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def code(text: object) -> str:
    return f"`{text}`" if text not in (None, "") else ""


@cache
def modules() -> list[ModuleType]:
    """Every module of the package, imported."""
    names = [found.name for found in pkgutil.walk_packages(pendula.__path__, "pendula.")]
    return [importlib.import_module(name) for name in names if not name.endswith("__main__")]


def codes() -> str:
    from pendula.documents import CODES

    lines: dict[str, str] = tomllib.loads(EXPLANATIONS.read_text(encoding="utf-8"))
    errors = error_kinds()
    refusals = refusal_codes()
    _explained({kind.code for kind in errors} | set(refusals), lines)
    parts: list[str] = []
    for package in sorted({kind.__module__.split(".")[1] for kind in errors}, key=_depth):
        kinds = [kind for kind in errors if kind.__module__.split(".")[1] == package]
        rows = [(code(name), lines[name], *_numbers(name, kinds)) for name in sorted({kind.code for kind in kinds})]
        parts += [f"## Errors of `pendula.{package}`", "", *table(("code", "means", "exit", "HTTP"), rows)]
    parts += ["## Faults of documents", "", "They come inside `document_refused`, each with its place.", ""]
    parts += table(("code", "means"), [(code(name), f"{line}.") for name, line in sorted(CODES.items())])
    parts += ["## Limits", "", "The numbers are in [limits](limits.md).", ""]
    by_code = _grouped({limit.name: limit.code for limit in all_limits()})
    parts += table(("code", "limit"), [(code(name), ", ".join(map(code, found))) for name, found in by_code])
    for module, found in _grouped(refusals):
        parts += [f"## Refusals and reasons of `{module}`", ""]
        parts += table(("code", "means"), [(code(name), lines[name]) for name in found])
    intro = (
        "Every error, refusal and reason has a code that does not change; programs use it, sentences are for "
        "readers. *Exit* is the [exit code](commands.md#exit-codes) of `pendula`. "
        "*HTTP* is the status where a request is refused; where another error reaches a caller, an exit of 1 is 422 "
        "and any other is 503. A refusal of an engine is 409."
    )
    return page("Codes", intro, parts)


def all_error_kinds() -> list[Any]:
    """Every class of error in the package."""
    from pendula.kernel.errors import PendulaError

    modules()
    found: list[type[PendulaError]] = [PendulaError]
    for kind in found:
        found.extend(child for child in kind.__subclasses__() if child not in found)
    return [kind for kind in found if kind.__module__.startswith("pendula.")]


def error_kinds() -> list[Any]:
    """The classes with their own code."""
    return [kind for kind in all_error_kinds() if "code" in vars(kind)]


@cache
def refusal_codes() -> dict[str, str]:
    """The codes of refusals, reasons and faults, with the first module of each.

    They are written out, or members of an enumeration `Code` or `FaultCode`.
    """
    found: dict[str, str] = {}
    for module in modules():
        for name in ("Code", "FaultCode"):
            choices = vars(module).get(name)
            if choices is not None and choices.__module__ == module.__name__:
                found |= {str(choice): module.__name__ for choice in choices}
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            match node:
                case ast.Call(
                    func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(refusal)), *_]
                ) if name in REFUSING:
                    found.setdefault(refusal, module.__name__)
    return found


def _depth(package: str) -> tuple[int, str]:
    order = ("kernel", "documents", "testing", "server", "cli")
    return (order.index(package) if package in order else len(order), package)


def _grouped(pairs: Mapping[str, str]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for name, group in sorted(pairs.items()):
        groups.setdefault(group, []).append(name)
    return sorted(groups.items())


def _explained(known: set[str], lines: Mapping[str, str]) -> None:
    missing, left_over = sorted(known - lines.keys()), sorted(lines.keys() - known)
    faults = [f"no line for {', '.join(missing)}"] if missing else []
    faults += [f"no such code as {', '.join(left_over)}"] if left_over else []
    if faults:
        raise Unexplained("; ".join(faults))


def _numbers(name: str, kinds: Iterable[Any]) -> tuple[str, str]:
    """Exit codes and HTTP statuses of a code."""
    exits = {str(kind.exit_code) for kind in kinds if kind.code == name}
    statuses = {str(kind.status) for kind in kinds if kind.code == name and "status" in vars(kind)}
    return " or ".join(sorted(exits)), "500" if name == "internal_error" else " or ".join(sorted(statuses))


def limits() -> str:
    rows = [
        (code(limit.name), _size(limit.default, limit.unit), limit.unit, code(limit.code), f"{limit.sentence}.")
        for limit in all_limits()
    ]
    intro = (
        "Limits on sizes and counts. A server overrides them in its [settings](settings.md): "
        "`limits.NAME` in the file, `PENDULA_LIMITS_NAME` in the environment."
    )
    return page("Limits", intro, table(("name", "default", "unit", "code", "when passed"), rows))


def all_limits() -> list[Limit]:
    """The limits of the kernel, then those of other modules."""
    others = [value for module in modules() for value in vars(module).values() if isinstance(value, Limit)]
    return list({limit.name: limit for limit in (*ALL, *others)}.values())


def _size(number: int, unit: str) -> str:
    for size, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if unit == "bytes" and number % size == 0:
            return f"{number // size} {name}"
    return f"{number:_}".replace("_", " ")


def commands() -> str:
    parts: list[str] = []
    for words, command in _tree():
        parts += [f"## `{words}`", "", *_described(command), "", f"    {_usage(words, command)}", ""]
        rows = [_parameter(it) for it in command.params if it.name != "help" and not getattr(it, "hidden", False)]
        parts += table(("parameter", "means", "default"), rows) if rows else []
        if examples := _examples(command.epilog):
            parts += ["Example:", "", *(f"    {line}" for line in examples), ""]
    intro = (
        "Every command of `pendula` takes `--json`, which prints one canonical JSON document on stdout and nothing "
        "else there. Exit codes mean the same for all commands; an error is one line on stderr "
        "([codes](codes.md))."
    )
    exits = table(("exit code", "means"), [(str(number), meaning) for number, meaning in MEANINGS.items()])
    return page("Commands", intro, ["## Exit codes", "", *exits, *parts])


def _tree() -> Iterator[tuple[str, Any]]:
    """Every command, by the words of its command line."""
    from typer.main import get_command

    from pendula.cli.program import build
    from pendula.cli.schedulers import GROUPS

    trees = [get_command(build(scheduler)) for scheduler in (None, *GROUPS)]
    seen: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("pendula", tree) for tree in trees]
    while waiting:
        words, command = waiting.pop(0)
        children = getattr(command, "commands", None)
        if children is None or (command.invoke_without_command and words != "pendula"):
            seen.setdefault(words, command)
        if children is not None:
            waiting += [(f"{words} {name}", child) for name, child in children.items()]
    yield from seen.items()


def _described(command: Any) -> list[str]:
    return [line.strip() for line in (command.help or "").strip().splitlines()]


def _usage(words: str, command: Any) -> str:
    named = [it.metavar or it.name.upper() for it in command.params if it.param_type_name == "argument"]
    required = {it.name for it in command.params if it.required}
    given = [it.opts[0] for it in command.params if it.name in required and it.param_type_name == "option"]
    shown = [name if name.lower() in required else f"[{name}]" for name in named]
    return " ".join([words, *shown, *(f"{option} …" for option in given), "[OPTIONS]"])


def _parameter(it: Any) -> tuple[str, str, str]:
    name = ", ".join([*it.opts, *it.secondary_opts]) if it.param_type_name == "option" else it.metavar or it.name
    value = "" if it.param_type_name == "argument" or it.is_flag else f" {it.metavar or _kind(it)}"
    return code(name + value), it.help or "", "required" if it.required else _shown(it)


def _shown(it: Any) -> str:
    """The default as shown by `--help`."""
    if isinstance(it.show_default, str):
        return it.show_default
    unsaid = it.show_default is False or getattr(it, "is_flag", False) or it.default in (None, (), [])
    return "" if unsaid else str(getattr(it.default, "value", it.default))


def _kind(it: Any) -> str:
    annotation = it.type_descriptor.annotation
    choices = getattr(annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return "/".join(choices)
    return {str: "TEXT", int: "N", Path: "PATH"}.get(annotation, "TEXT")


def _examples(epilog: str | None) -> list[str]:
    plain = re.sub(r"(?<!\\)\[/?[a-z]+\]", "", epilog or "").replace(r"\[", "[")
    return [line.strip() for line in plain.splitlines() if line.strip().startswith("pendula")]


def settings() -> str:
    from pendula.server.settings import FIXED, SETTINGS, Settings, variable_of

    flags = _serve_flags()
    rows = []
    for name, setting in SETTINGS.items():
        if name.startswith("limits."):
            continue
        variable = variable_of(name)
        flag = flags.get(variable.removeprefix("PENDULA_").lower(), "")
        default = attrgetter(name)(Settings())
        rows.append((code(name), code(variable), code(flag), _default(default), setting.allowed))
    parts = list(table(("setting", "variable", "flag", "default", "allowed"), rows))
    parts += [
        "Each [limit](limits.md) is a setting too, `limits.NAME` or `PENDULA_LIMITS_NAME`,",
        f"except those that belong to a file format: {', '.join(map(code, sorted(FIXED)))}.",
        "",
        "`PENDULA_CONFIG`, or the flag `--config`, names the TOML file:",
        "",
        "```toml",
        'host = "127.0.0.1"',
        'log_format = "json"',
        "",
        "[limits]",
        "body_bytes = 1048576",
        "```",
    ]
    intro = (
        "The settings of `pendula serve`. A flag wins over a variable, a variable over the file, the file over the "
        "default. An unknown or invalid setting is rejected, with its name and the allowed values."
    )
    return page("Settings", intro, parts)


def _serve_flags() -> dict[str, str]:
    serve = next(command for words, command in _tree() if words == "pendula serve")
    flags = {it.name: it.opts[0] for it in serve.params if it.param_type_name == "option"}
    return {**flags, "allowed_hosts": flags.get("allowed_host", "")}


def _default(value: object) -> str:
    if isinstance(value, bool):
        return code(str(value).lower())
    return code(value) if value not in (None, ()) else "none"


def http() -> str:
    from pendula.server.app import create_app
    from pendula.server.monitoring import Metrics
    from pendula.server.schedulers import schedulers_for
    from pendula.server.schedulers.fleet.metrics import FleetMetrics
    from pendula.server.settings import Settings

    demo_settings = Settings(demo=True)
    document = create_app(demo_settings, schedulers_for(demo_settings)).openapi()
    parts: list[str] = ["## Routes", ""]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts += _operation(method.upper(), path, operation)
    parts += ["## Shapes", ""]
    for name, shape in sorted(document["components"]["schemas"].items()):
        parts += _shape(name, shape)
    parts += ["## Metrics", "", "At `/metrics`, in Prometheus' text form.", ""]
    parts += _metrics(Metrics().registry)
    of_fleets = CollectorRegistry()
    FleetMetrics(of_fleets, dict)
    parts += ["For each served fleet, with the label `fleet`:", "", *_metrics(of_fleets)]
    intro = (
        "The routes of a server, from its `/openapi.json`, which has every detail. Schedulers with "
        "engines have the same basic routes, each under its own name. Errors always have the shape `ErrorView`, and "
        "every answer has a header `X-Request-Id`."
    )
    return page("HTTP", intro, parts)


def _metrics(registry: CollectorRegistry) -> Iterator[str]:
    """By the exported names; a histogram also has `_sum` and `_count`."""
    rows = [
        (code(one.name + ("_total" if one.type == "counter" else "")), one.type, f"{one.documentation.rstrip('.')}.")
        for one in registry.collect()
    ]
    return table(("name", "kind", "means"), rows)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> Iterator[str]:
    yield f"### `{method} {path}`"
    yield ""
    yield operation.get("description", operation.get("summary", ""))
    yield ""
    asked = [f"`{it['name']}` ({it['in']}: {_type(it['schema'])})" for it in operation.get("parameters", [])]
    if asked:
        yield f"- takes {', '.join(asked)}"
    if "requestBody" in operation:
        yield f"- body {_content(operation['requestBody'])}"
    answers = operation["responses"]
    good = [f"{status} {_content(answer)}".rstrip() for status, answer in answers.items() if status < "300"]
    bad = sorted(status for status in answers if status >= "300")
    yield f"- answers {', '.join(good)}; refuses with {', '.join(bad)}"
    yield ""


def _content(holder: Mapping[str, Any]) -> str:
    kinds = [
        _type(content["schema"]) if "$ref" in content.get("schema", {}) else f"`{media}`"
        for media, content in holder.get("content", {}).items()
    ]
    return " or ".join(kinds)


def _shape(name: str, shape: Mapping[str, Any]) -> Iterator[str]:
    yield f"### {name}"
    yield ""
    if "description" in shape:
        yield f"{shape['description']}{'' if shape['description'].endswith('.') else '.'}"
        yield ""
    if "properties" in shape:
        required = shape.get("required", [])
        rows = [
            (code(it), _type(kind), "" if it in required else "optional") for it, kind in shape["properties"].items()
        ]
        yield from table(("member", "type", ""), rows)
    else:
        yield from (_type(shape), "")


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"$ref": str(reference)}:
            name = reference.rpartition("/")[2]
            return f"[{name}](#{name.lower()})"
        case {"enum": list(words)}:
            return "one of " + ", ".join(code(word) for word in words)
        case {"anyOf": list(kinds)}:
            return " or ".join(_type(kind) for kind in kinds)
        case {"type": "array", "prefixItems": list(kinds)}:
            return "[" + ", ".join(_type(kind) for kind in kinds) + "]"
        case {"type": "array", "items": dict(kind)}:
            return f"list of {_type(kind)}"
        case {"type": str(kind)}:
            return kind
        case _:
            return "any JSON"


PAGES: Mapping[str, Callable[[], str]] = {
    "codes.md": codes,
    "limits.md": limits,
    "commands.md": commands,
    "settings.md": settings,
    "http.md": http,
}


if __name__ == "__main__":
    sys.exit(main())
