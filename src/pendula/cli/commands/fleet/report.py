"""What the compiler and the certificate say about a map, as one document for `compile` and `check`."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pendula.fleet import Certificate, CompiledMap, Finding

MOST_IDS = 4
# Facts of a finding that are no place.
_NO_PLACE = frozenset({"file", "path", "line", "column", "limit", "expected", "condition"})


def place_of(finding: "Finding") -> str:
    """Where: `file:line:column` of a document, or the ids that a finding names; `map` where it is about all of it."""
    facts = finding.details
    if "file" in facts:
        return f"{facts['file']}:{facts['line']}:{facts['column']}" if facts["line"] else str(facts["file"])
    ids: list[str] = []
    for name, value in facts.items():
        if name not in _NO_PLACE:
            ids += _ids(value)
    return ", ".join(ids) or "map"


def _ids(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list | tuple):
        return []
    named = [one for one in value if isinstance(one, str)]
    return named if len(named) <= MOST_IDS else [*named[:MOST_IDS], f"and {len(named) - MOST_IDS} more"]


def findings_form(findings: "Sequence[Finding]") -> list[dict[str, Any]]:
    """Worst first, then code by code, the rarest first; each with its place and what to do about it."""
    from pendula.fleet.model import as_json

    return [{**as_json(one), "place": place_of(one), "remedy": one.remedy} for one in ranked(findings)]


def ranked(findings: "Sequence[Finding]") -> "list[Finding]":
    from pendula.fleet import Severity

    order = list(Severity)
    often = Counter((one.severity, one.code) for one in findings)
    return sorted(
        findings,
        key=lambda one: (
            order.index(one.severity),
            often[one.severity, one.code],
            one.code.value,
            one.message,
            place_of(one),
        ),
    )


def severities(findings: "Sequence[Finding]") -> dict[str, int]:
    from pendula.fleet import Severity

    return {severity.value: sum(one.severity is severity for one in findings) for severity in Severity}


def sizes(site: "CompiledMap") -> dict[str, int]:
    return {
        "nodes": len(site.network.nodes),
        "edges": len(site.network.edges),
        "edgeGroups": len(site.network.groups),
        "cells": len(site.cells),
        "corridors": len(site.corridors),
        "criticalSections": len(site.sections),
        "conflicts": len(site.named),
    }


def map_form(site: "CompiledMap", findings: "Sequence[Finding]", certificate: "Certificate | None") -> dict[str, Any]:
    """A map in numbers and hashes, with its certificate where one was asked for."""
    return {
        "mapId": site.map_id,
        "mapHash": site.map_hash,
        "robotProfileHash": site.profile_hash,
        "compiledMapHash": site.compiled_hash,
        "conflictGranularity": site.params.granularity.value,
        "sizes": sizes(site),
        "severities": severities(findings),
        "certificate": None if certificate is None else certificate.form(site),
    }
