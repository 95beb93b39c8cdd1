"""Compile a source map, truck profiles and parameters into a compiled map, or into a report of findings.

The same input in any order gives the same bytes. Given a previously compiled map, only pairs of cells with a changed
edge are compared again; the bytes equal those of a full compilation.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from pendula.fleet.compiler.cell_shapes import cut
from pendula.fleet.compiler.disc_windows import zones_of
from pendula.fleet.compiler.normal_form import normalised, sections_drawn
from pendula.fleet.compiler.overlaps import distances, overlapping
from pendula.fleet.compiler.source_form import source_form
from pendula.fleet.compiler.validation import curve_findings, map_findings
from pendula.fleet.exclusion.cells import Cells
from pendula.fleet.exclusion.conflicts import geometric, named_conflicts, opposite_directions, whole_groups
from pendula.fleet.exclusion.corridors import corridors_of, following_of
from pendula.fleet.exclusion.critical_sections import sections_of
from pendula.fleet.exclusion.relation import relation
from pendula.fleet.exclusion.standing import standing_of
from pendula.fleet.exclusion.turning_discs import without_turnless_nodes, zone_triples
from pendula.fleet.geometry.curves import Curve
from pendula.fleet.model import (
    Code,
    CompileParams,
    Finding,
    Granularity,
    MapRefused,
    SourceMap,
    errors_of,
    finding,
)
from pendula.fleet.network.graph import Network
from pendula.fleet.network.transitions import transitions_of
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.fleet.site.file import seal
from pendula.fleet.site.file_names import params_form
from pendula.fleet.trucks.envelope import Envelope, largest_envelope
from pendula.fleet.trucks.profiles import RobotProfile, hash_of
from pendula.kernel.canonical import digest, encode
from pendula.kernel.errors import LimitExceeded, WrongUsage

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DEFAULT_PARAMS = CompileParams()


@dataclass(frozen=True, eq=False, slots=True)
class Report:
    """The findings; `compiled` and `data` are None if one of them is an ERROR."""

    findings: tuple[Finding, ...]
    compiled: CompiledMap | None
    data: bytes | None


def compile_map(
    source: SourceMap,
    profiles: Sequence[RobotProfile],
    params: CompileParams = DEFAULT_PARAMS,
    previous: CompiledMap | None = None,
) -> CompiledMap:
    """The compiled map; raises `MapRefused` with all findings when one of them is an ERROR."""
    report = examine(source, profiles, params, previous)
    if report.compiled is None:
        errors = errors_of(report.findings)
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        raise MapRefused(
            f"The map {source.map_id!r} cannot be used: {errors[0].message}{more}", findings=report.findings
        )
    return report.compiled


def examine(
    source: SourceMap,
    profiles: Sequence[RobotProfile],
    params: CompileParams = DEFAULT_PARAMS,
    previous: CompiledMap | None = None,
) -> Report:
    """Compile as far as possible and report all findings; never raises for a bad map."""
    if not profiles:
        raise WrongUsage("Compiling a map needs at least one truck profile")
    findings: list[Finding] = []
    try:
        return _examined(source, profiles, params, previous, findings)
    except LimitExceeded as error:
        remedy = "remove overlapping lanes, or split the map"
        findings.append(finding(Code.CONFLICT_BUILD_FAILED, error.message, remedy, limit=str(error.details["limit"])))
        return Report(_sorted(findings), None, None)


def _examined(
    source: SourceMap,
    profiles: Sequence[RobotProfile],
    params: CompileParams,
    previous: CompiledMap | None,
    findings: list[Finding],
) -> Report:
    """The report; `findings` is filled in place, so that it survives a `LimitExceeded`."""
    envelope = largest_envelope(profiles)
    network, curves, source_findings = normalised(source, params)
    findings += [*source_findings, *curve_findings(network, curves, profiles)]
    cells = cut(network, curves, envelope, params)
    i, j = _pairs(network, cells, envelope, params, previous)
    around = zones_of(network, curves, cells, envelope, params)
    conflicts = named_conflicts(network, cells, around, i, j, _gaps(network, curves, envelope, params, i, j))
    zones = without_turnless_nodes(network, around)
    parts = [*geometric(i, j, len(cells)), *opposite_directions(network, cells), *zone_triples(zones, len(cells))]
    if params.granularity is Granularity.EDGE:
        parts += whole_groups(network, cells, conflicts)
    exclusive = relation(len(cells) + len(network.nodes), parts)
    corridors = corridors_of(network)
    following = following_of(network, cells, corridors, envelope, exclusive)
    sections, section_findings = sections_of(network, cells, sections_drawn(source, network))
    transitions = transitions_of(network, params.tangent_eps_urad)
    standing = standing_of(
        network=network,
        cells=cells,
        zones=zones,
        sections=sections,
        conflicts=conflicts,
        transitions=transitions,
        corridors=corridors,
        relation=exclusive,
    )
    draft = CompiledMap(
        network=network,
        params=params,
        envelope=envelope,
        cells=cells,
        zones=zones,
        conflicts=exclusive,
        following=following,
        named=conflicts,
        corridors=corridors,
        sections=sections,
        transitions=transitions,
        standing=standing,
        findings=(),
        map_hash="sha256:" + digest({"graph": source_form(source), "params": params_form(params)}),
        profile_hash=hash_of(profiles),
    )
    every = _sorted([*findings, *section_findings, *map_findings(draft)])
    if errors_of(every):
        return Report(every, None, None)
    compiled, data = seal(_with_findings(draft, every))
    return Report(every, compiled, data)


def _with_findings(draft: CompiledMap, findings: tuple[Finding, ...]) -> CompiledMap:
    return CompiledMap(
        **{name: getattr(draft, name) for name in draft.__dataclass_fields__ if name != "findings"}, findings=findings
    )


def _sorted(findings: list[Finding]) -> tuple[Finding, ...]:
    """Sorted by code and details, without duplicates. Only errors with equal details can differ in their messages."""
    unique = {(item.code.value, encode(item.details), item.message): item for item in findings}
    return tuple(item for _, item in sorted(unique.items(), key=lambda item: item[0]))


def _gaps(
    network: Network, curves: tuple[Curve, ...], envelope: Envelope, params: CompileParams, i: Ints, j: Ints
) -> Floats:
    """The distance of the areas of every pair: above 0 only where the margin made them meet."""
    if not params.conflict_margin_um:
        return np.zeros(len(i))
    return distances(cut(network, curves, envelope, replace(params, conflict_margin_um=0)), i, j)


def _pairs(
    network: Network, cells: Cells, envelope: Envelope, params: CompileParams, previous: CompiledMap | None
) -> tuple[Ints, Ints]:
    """Pairs of cells whose areas meet; pairs of unchanged edges come from `previous`."""
    if not len(cells):
        none = np.zeros(0, dtype=np.int64)
        return none, none
    if previous is None or previous.envelope != envelope or previous.params != params:
        return overlapping(cells)
    if params.granularity is Granularity.EDGE:
        # The relation holds whole groups here, so the pairs that meet by shape cannot be read from it.
        return overlapping(cells)
    same = _unchanged(network, cells, previous)
    renumbered = np.full(len(previous.cells), -1, dtype=np.int64)
    changed = np.ones(len(cells), dtype=np.bool_)
    for edge, before in same:
        own, old = cells.of_edge(edge), previous.cells.of_edge(before)
        renumbered[old.start : old.stop] = np.arange(own.start, own.stop)
        changed[own.start : own.stop] = False
    i, j = previous.conflicts.pairs()
    inside = (i < len(renumbered)) & (j < len(renumbered))
    i, j = renumbered[i[inside]], renumbered[j[inside]]
    keep = (i >= 0) & (j >= 0)
    i, j = i[keep], j[keep]
    new_i, new_j = overlapping(cells, np.flatnonzero(changed).astype(np.int64))
    # Edges keep their order when others are added or removed, so i < j still holds.
    i, j = np.concatenate([i, new_i]), np.concatenate([j, new_j])
    order = np.lexsort((j, i))
    return i[order], j[order]


def _unchanged(network: Network, cells: Cells, previous: CompiledMap) -> list[tuple[int, int]]:
    """Edges with the same key, group and shapes as before, with their old numbers.

    Paths are not compared: a moved control point can change a shape but not the path in whole micrometres.
    """
    old = previous.edge_number
    result = []
    for number, edge in enumerate(network.edges):
        before = old.get(edge.key)
        if before is None:
            continue
        was = previous.network.edges[before]
        if edge.group_key == was.group_key and _same_shapes(cells, number, previous.cells, before):
            result.append((number, before))
    return result


def _same_shapes(cells: Cells, edge: int, others: Cells, other: int) -> bool:
    first, rest = _quads(cells, edge)
    other_first, other_rest = _quads(others, other)
    return np.array_equal(first, other_first) and np.array_equal(rest, other_rest)


def _quads(cells: Cells, edge: int) -> tuple[Ints, Ints]:
    """The offsets of the quadrangles of each cell of an edge, from its first one, and the quadrangles."""
    at = cells.quad_first[int(cells.first[edge]) : int(cells.first[edge + 1]) + 1]
    return at - at[0], cells.quads[int(at[0]) : int(at[-1])]
