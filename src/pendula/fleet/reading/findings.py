"""Faults of a document as findings of the validator, with their places."""

from pendula.documents import DocumentRefused
from pendula.fleet.model import Code, Finding, finding
from pendula.fleet.reading.values import FaultCode
from pendula.kernel.canonical import Json

_GEOMETRY = frozenset({"not_finite", "number_too_long", FaultCode.COORDINATE_OUT_OF_RANGE})


def findings_of(refused: DocumentRefused, profile: bool = False) -> tuple[Finding, ...]:
    """The faults of a document as findings of the validator, with their places."""
    result = []
    for fault in refused.faults:
        code = Code.MAP_INVALID_GEOMETRY if fault.code in _GEOMETRY else Code.MAP_PARSE_ERROR
        if profile and fault.code == "missing_field":
            code = Code.PROFILE_MISSING_FIELD
        remedy = f"allowed: {', '.join(fault.allowed)}" if fault.allowed else ""
        place: dict[str, Json] = {
            "file": refused.source_name,
            "path": fault.path,
            "line": fault.line,
            "column": fault.column,
        }
        result.append(finding(code, f"{fault.path}: {fault.message}", remedy, **place))
    return tuple(result)
