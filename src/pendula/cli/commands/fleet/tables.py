"""What people see of a map: its numbers, its findings with their remedies, its certificate."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from pendula.cli.output import facts
from pendula.cli.text import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_A_CODE = 12
STYLES = {"ERROR": "bold red", "WARN": "yellow", "INFO": "dim"}
_NOUNS = {"ERROR": "error", "WARN": "warning", "INFO": "note"}


def compiled(form: Mapping[str, Any]) -> "RenderableType":
    """What was written, and what is to be said about it."""
    pairs = [
        ("map", form["mapId"]),
        ("written", f"{form['file']}, {form['bytes']} bytes"),
        ("holds", _sizes(form["sizes"])),
        ("conflicts reach", form["conflictGranularity"]),
        ("compiled", form["compiledMapHash"]),
        ("source", form["mapHash"]),
        ("trucks", form["robotProfileHash"]),
        ("findings", _severities(form["severities"])),
    ]
    parts: list[RenderableType] = [facts(pairs)]
    if form["certificate"] is not None:
        parts.append(_certificate(form["certificate"]))
    if form.get("findings"):
        parts.append(findings(form["findings"]))
    return Group(*parts)


def checked(form: Mapping[str, Any], sizes: Mapping[str, int] | None, *, asked: bool) -> "RenderableType":
    """The findings, the certificate or why there is none, and one line at the end."""
    parts: list[RenderableType] = []
    if form["findings"]:
        parts.append(findings(form["findings"]))
    parts += [Text(f"doubt: {doubt}") for doubt in form["doubts"]]
    if form["certificate"] is not None:
        parts.append(_certificate(form["certificate"]))
    elif asked:
        parts.append(Text("No certificate: first the errors."))
    told = "cannot be used" if not form["sound"] else "is sound"
    held = "" if sizes is None else f" {_sizes(sizes)};"
    parts.append(Text(f"{form['file']} {told}:{held} {_severities(form['severities'])}."))
    return Group(*parts)


def findings(forms: Sequence[Mapping[str, Any]]) -> "RenderableType":
    """One row each, code by code: the worst first, of those the rarest; ids are folded, never cut. A code that comes
    up often shows some of its findings and says how many more there are."""
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("severity", "code", "where", "what", "what to do"):
        drawn.add_column(column, overflow="fold", no_wrap=column in ("severity", "code"))
    hidden = 0
    for (_, code), group in groupby(forms, key=lambda one: (one["severity"], one["code"])):
        alike = list(group)
        shown = alike if len(alike) <= MOST_A_CODE else alike[: MOST_A_CODE - 1]
        for one in shown:
            severity = Text(one["severity"], style=STYLES[one["severity"]])
            rest = (Text(one[member]) for member in ("code", "place", "message", "remedy"))
            drawn.add_row(severity, *rest)
        if len(shown) < len(alike):
            hidden += len(alike) - len(shown)
            drawn.add_row("", code, f"and {len(alike) - len(shown)} more", "", "")
    return Group(drawn, Text("--json tells all")) if hidden else drawn


def _certificate(form: Mapping[str, Any]) -> "RenderableType":
    trucks = counted(len(form["trucks"]), "truck")
    if form["live"]:
        return Text(f"LIVE: {trucks} and {counted(form['legs'], 'way')} meet W1 to W3.", style="bold green")
    why = form["counterexample"]
    return Group(
        Text(f"NOT LIVE, {why['condition']}: {why['message']}.", style="bold red"), Text(f"Remedy: {why['remedy']}.")
    )


def _sizes(sizes: Mapping[str, int]) -> str:
    nouns = {
        "nodes": "node",
        "edges": "edge",
        "edgeGroups": "lane",
        "cells": "cell",
        "corridors": "corridor",
        "criticalSections": "section",
        "conflicts": "conflict",
    }
    return ", ".join(counted(sizes[name], noun) for name, noun in nouns.items())


def _severities(severities: Mapping[str, int]) -> str:
    told = [counted(count, _NOUNS[name]) for name, count in severities.items() if count]
    return ", ".join(told) or "no findings"
