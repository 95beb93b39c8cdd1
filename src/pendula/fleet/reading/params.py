"""Reader of compile parameters, with the names of the contract; missing members have their defaults."""

from decimal import Decimal

from pendula.documents import Cursor, Document
from pendula.fleet.model import CompileParams, Granularity
from pendula.fleet.units import micro

PARAMS = (
    *("polylineStepM", "chordErrorM", "conflictMarginM", "cellLenM", "maxRectsPerCell", "tangentEps"),
    *("conflictGranularity", "offRouteExtraOnBendM", "turningExtraMarginM"),
)


def read_params(document: Document) -> CompileParams:
    return document.read(params)


def params(root: Cursor) -> CompileParams:
    """The compile parameters of an object; missing members have their defaults."""
    members = root.object(optional=PARAMS, unknown="keep")
    usual = CompileParams()

    def within(member: str, least: str, most: str, default: int) -> int:
        if member not in members:
            return default
        return micro(members[member].decimal(min=Decimal(least), max=Decimal(most)))

    return CompileParams(
        polyline_step_um=within("polylineStepM", "0.05", "0.2", usual.polyline_step_um),
        chord_error_um=within("chordErrorM", "0.0005", "0.1", usual.chord_error_um),
        conflict_margin_um=within("conflictMarginM", "0", "10", usual.conflict_margin_um),
        cell_len_um=within("cellLenM", "0.5", "1", usual.cell_len_um),
        max_rects_per_cell=members["maxRectsPerCell"].integer(min=1, max=256, default=usual.max_rects_per_cell),
        tangent_eps_urad=within("tangentEps", "0", "0.5", usual.tangent_eps_urad),
        granularity=members["conflictGranularity"].choice(Granularity, default=usual.granularity),
        bend_extra_um=within("offRouteExtraOnBendM", "0", "5", 0) + within("turningExtraMarginM", "0", "5", 0),
    )
