"""Finds the place of a planted mistake: a pattern of Python inside one function, in its syntax tree.

A pattern is an expression or statements. Layout, comments and docstrings do not matter, and a local variable that has
another name than in the pattern still matches, so that a rename does not lose a mistake. Files that are not Python are
searched for the text itself.
"""

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

MODULE = "module"  # for code outside functions and classes

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Place(NamedTuple):
    """One match: the nodes, from first to last, and the names of the pattern's local variables there."""

    nodes: Sequence[ast.expr] | Sequence[ast.stmt]
    names: Mapping[str, str]


class NotOnce(ValueError):
    """The pattern matches no place, or several."""


def planted(source: str, where: str, find: str, replace: str) -> str:
    """The source with the mistake; raises `NotOnce` unless the pattern matches exactly one place."""
    places = found(source, where, find, replace)
    if len(places) != 1:
        raise NotOnce(f"the pattern matches {len(places)} places in {where}, not one")
    (place,) = places
    lines = source.splitlines(keepends=True)
    first, last = place.nodes[0], place.nodes[-1]
    begin = _offset(lines, first.lineno, first.col_offset)
    assert last.end_lineno is not None
    assert last.end_col_offset is not None
    end = _offset(lines, last.end_lineno, last.end_col_offset)
    is_expression = isinstance(first, ast.expr)
    text = _written(replace, place.names, is_expression, first.col_offset)
    encoded = source.encode()
    return (encoded[:begin] + text.encode() + encoded[end:]).decode()


def found(source: str, where: str, find: str, replace: str) -> list[Place]:
    """All places of a pattern in a function: those with the names of the pattern, else those with others."""
    module = _parsed(source)
    find_expression, replaced_by = _expression(find), _expression(replace)
    pattern = find_expression if find_expression is not None and replaced_by is not None else statements(find)
    scope = _scope(module, where)
    if scope is None:
        return []
    exact = list(_matches(scope, pattern, frozenset(), frozenset()))
    if exact:
        return exact
    own = _local_names(scope)
    return list(_matches(scope, pattern, own, _known_names(module)))


@lru_cache(maxsize=64)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def statements(text: str) -> list[ast.stmt]:
    """Statements of a function: `return` and `await` are allowed."""
    body = "\n".join(f"    {line}" for line in text.strip("\n").split("\n"))
    (function,) = ast.parse(f"async def _():\n{body}\n").body
    assert isinstance(function, ast.AsyncFunctionDef)
    return function.body


def _scope(module: ast.Module, where: str) -> ast.AST | None:
    scope: ast.AST = module
    if where == MODULE:
        return module
    for name in where.split("."):
        inner = [node for node in _definitions(scope) if node.name == name]
        if not inner:
            return None
        scope = inner[-1]  # the last definition, after overloads or the getter of a property
    return scope


def _definitions(scope: ast.AST) -> Iterator[Function | ast.ClassDef]:
    """Functions and classes right inside a scope, also under `if`, `with` or `try`."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, Function | ast.ClassDef):
            yield node
        else:
            yield from _definitions(node)


def _matches(
    scope: ast.AST, pattern: list[ast.stmt] | ast.expr, own: frozenset[str], known: frozenset[str]
) -> Iterator[Place]:
    for node in ast.walk(scope):
        if isinstance(pattern, ast.expr):
            names: dict[str, str] = {}
            if isinstance(node, ast.expr) and _same(pattern, node, names, own, known):
                yield Place([node], names)
            continue
        for _, body in ast.iter_fields(node):
            if not (isinstance(body, list) and body and isinstance(body[0], ast.stmt)):
                continue
            for at in range(len(body) - len(pattern) + 1):
                names = {}
                part = body[at : at + len(pattern)]
                if all(_same(one, other, names, own, known) for one, other in zip(pattern, part, strict=True)):
                    yield Place(part, names)


def _same(pattern: object, node: object, names: dict[str, str], own: frozenset[str], known: frozenset[str]) -> bool:
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.expr_context):
        return True
    if isinstance(pattern, list):
        assert isinstance(node, list)
        return len(pattern) == len(node) and all(
            _same(one, other, names, own, known) for one, other in zip(pattern, node, strict=True)
        )
    if isinstance(pattern, ast.Name):
        assert isinstance(node, ast.Name)
        return _same_name(pattern.id, node.id, names, own, known)
    if isinstance(pattern, ast.arg):
        assert isinstance(node, ast.arg)
        return _same_name(pattern.arg, node.arg, names, own, known)
    if isinstance(pattern, ast.AST):
        assert isinstance(node, ast.AST)
        return all(
            _same(value, getattr(node, field), names, own, known)
            for field, value in ast.iter_fields(pattern)
            if field not in ("kind", "type_comment")
        )
    return pattern == node


def _same_name(pattern: str, name: str, names: dict[str, str], own: frozenset[str], known: frozenset[str]) -> bool:
    if pattern in names:
        return names[pattern] == name
    if name in names.values():
        return False
    if pattern != name and (name not in own or pattern in known):
        return False
    names[pattern] = name
    return True


def _local_names(scope: ast.AST) -> frozenset[str]:
    if isinstance(scope, ast.Module | ast.ClassDef):
        return frozenset()
    stored = {node.id for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    captured = {node.name for node in ast.walk(scope) if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name}
    return frozenset(stored | captured | {node.arg for node in ast.walk(scope) if isinstance(node, ast.arg)})


def _known_names(module: ast.Module) -> frozenset[str]:
    """Names with one meaning in a module: its definitions and imports, and builtins."""
    known = set(dir(builtins)) | {"self", "cls"}
    for node in module.body:
        for part in ast.walk(node) if not isinstance(node, Function | ast.ClassDef) else ():
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                known.add(part.id)
            elif isinstance(part, ast.alias):
                known.add((part.asname or part.name).partition(".")[0])
        if isinstance(node, Function | ast.ClassDef):
            known.add(node.name)
    return frozenset(known)


def _written(replace: str, names: Mapping[str, str], is_expression: bool, indent: int) -> str:
    """The replacement, with the names and the layout of the place."""
    renamed = _Renaming(names)
    if is_expression:
        return f"({ast.unparse(renamed.visit(ast.parse(replace.strip(), mode='eval')))})"
    changed = [renamed.visit(statement) for statement in statements(replace)]
    text = ast.unparse(ast.fix_missing_locations(ast.Module(changed, [])))
    return text.replace("\n", "\n" + " " * indent)


class _Renaming(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self._names.get(node.id, node.id), node.ctx)


def _offset(lines: Sequence[str], line: int, column: int) -> int:
    return len("".join(lines[: line - 1]).encode()) + column
