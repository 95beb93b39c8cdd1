"""Findings and certificate of a map as one document, for `compile` and `check`."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pendula.fleet import Certificate, CompiledMap, Finding

MOST_IDS = 4
# Details of a finding that are not a place.
_NO_PLACE = frozenset({"file", "path", "line", "column", "limit", "expected", "condition"})


def place_of(finding: "Finding") -> str:
    """`file:line:column` of a document, or the ids that a finding names; `map` without either."""
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
    ids = [item for item in value if isinstance(item, str)]
    return ids if len(ids) <= MOST_IDS else [*ids[:MOST_IDS], f"and {len(ids) - MOST_IDS} more"]


def findings_form(findings: "Sequence[Finding]") -> list[dict[str, Any]]:
    """Findings by severity, then by code, the rarest first; each with its place and remedy."""
    from pendula.fleet.model import as_json

    return [{**as_json(finding), "place": place_of(finding), "remedy": finding.remedy} for finding in ranked(findings)]


def ranked(findings: "Sequence[Finding]") -> "list[Finding]":
    from pendula.fleet import Severity

    order = list(Severity)
    often = Counter((finding.severity, finding.code) for finding in findings)
    return sorted(
        findings,
        key=lambda finding: (
            order.index(finding.severity),
            often[finding.severity, finding.code],
            finding.code.value,
            finding.message,
            place_of(finding),
        ),
    )


def severities(findings: "Sequence[Finding]") -> dict[str, int]:
    from pendula.fleet import Severity

    return {severity.value: sum(finding.severity is severity for finding in findings) for severity in Severity}


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
    """Sizes and hashes of a map, with its certificate if there is one."""
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
