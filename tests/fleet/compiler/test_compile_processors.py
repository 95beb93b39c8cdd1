"""Every processor, hash seed and number of threads gives the same bytes.

Other interpreters compile the reference maps here: without the optional features of this processor that numpy and the
C library would use, one by one and all together, with other hash seeds and other numbers of threads.
"""

import ast
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NOT_RUN = "NOT RUN: maps on other processors"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# glibc also has variants of its mathematics for processors with and without these.
PLAIN_LIBRARY = "glibc.cpu.hwcaps=-AVX2_Usable,-AVX2,-FMA_Usable,-FMA,-FMA4_Usable,-FMA4,-AVX512F"

# Prints the enabled features, then the digest of each artifact and of all findings.
COMPILE = """
import sys
from hashlib import sha256
from importlib import import_module

from msgspec.structs import replace

from pendula.fleet import CompileParams, examine
from pendula.fleet.compiler.generated_maps import random_map
from pendula.fleet.compiler.samples import FL_STD
from pendula.fleet.model import Granularity
from pendula.kernel.canonical import digest
from tests.fleet.sites import SCENES

umath = import_module("numpy._core._multiarray_umath")
print(*(name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)))
turned = replace(FL_STD, heading_error_urad=26_180, width_um=1_234_567)
usual = CompileParams()
others = (
    CompileParams(granularity=Granularity.EDGE, conflict_margin_um=333_333),
    CompileParams(polyline_step_um=70_001, chord_error_um=700, cell_len_um=777_777, bend_extra_um=12_345),
    CompileParams(max_rects_per_cell=2),
)
maps = [make() for make in SCENES.values()] + [random_map(seed, 4, 9) for seed in range(6)]
tasks = [(source, FL_STD, usual) for source in maps]
curved = (SCENES["tail-swing-bend"](), random_map(7, 4, 9))
tasks += [(source, turned, params) for source in curved for params in others]
for source, truck, params in tasks:
    report = examine(source, [truck], params)
    found = digest([[finding.code.value, finding.message, finding.details] for finding in report.findings])
    print(source.map_id, sha256(report.data or b"").hexdigest(), found)
"""


def optional_features() -> list[str]:
    """Optional features that numpy uses on this processor."""
    umath: Any = import_module("numpy._core._multiarray_umath")
    return [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__.get(name)]


def started(**environment: str) -> "subprocess.Popen[str]":
    """Another interpreter that compiles the maps."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("NPY_", "PYTHON"))}
    return subprocess.Popen(
        [sys.executable, "-c", COMPILE],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**usual, "PYTHONPATH": path, "PYTHONHASHSEED": "0", **environment},
    )


def reported(child: "subprocess.Popen[str]") -> tuple[list[str], list[str]]:
    """Its features, and its result for each map."""
    out, err = child.communicate()
    assert child.returncode == 0, err
    first, *rest = out.splitlines()
    return first.split(), rest


def without(features: list[str], **more: str) -> "subprocess.Popen[str]":
    return started(NPY_DISABLE_CPU_FEATURES=" ".join(features), **more) if features else started(**more)


@pytest.mark.campaign
@pytest.mark.req("FLT-MAP-18")
def test_neither_processor_nor_hash_seed_nor_threads_make_a_difference() -> None:
    features = optional_features()
    half = len(features) // 2
    children = [
        started(),
        without(features, PYTHONHASHSEED="1", **dict.fromkeys(THREADS, "1")),
        without(features[half:], PYTHONHASHSEED="2", **dict.fromkeys(THREADS, "2"), GLIBC_TUNABLES=PLAIN_LIBRARY),
    ]

    here, least, some = map(reported, children)

    assert (here[0], least[0], some[0]) == (features, [], features[:half])
    assert least[1] == here[1]
    assert some[1] == here[1]
    assert len({line.split()[1] for line in here[1]}) > 15
    if not features:
        pytest.skip(f"{NOT_RUN} (numpy uses no optional features here)")


# Functions that numpy and the C library compute differently on other processors: their last bits are unreliable.
DIFFERING = frozenset(
    {
        *(
            "acos",
            "arccos",
            "arcsin",
            "arctan",
            "arctan2",
            "asin",
            "atan",
            "atan2",
            "cos",
            "cosh",
            "sin",
            "sinh",
            "tan",
        ),
        *(
            "tanh",
            "hypot",
            "cbrt",
            "exp",
            "exp2",
            "expm1",
            "log",
            "log10",
            "log1p",
            "log2",
            "logaddexp",
            "pow",
            "power",
        ),
        *("cross", "dist", "dot", "einsum", "inner", "kron", "linalg", "matmul", "outer", "tensordot", "vdot", "fma"),
        *("average", "convolve", "correlate", "cumprod", "fsum", "gradient", "interp", "mean", "nansum", "prod", "std"),
        *("sum", "sumprod", "trapezoid", "var"),
    }
)
# Sums of whole numbers have no last bits.
WHOLE = {("pendula.fleet.map.exclusion", "sum")}


def modules_of_the_compiler() -> dict[str, ast.Module]:
    """The modules that the compiler imports, and those that they import."""
    found: dict[str, ast.Module] = {}
    waiting = ["pendula.fleet.compiler.compile"]
    while waiting:
        name = waiting.pop()
        file = ROOT / "src" / Path(*name.split(".")).with_suffix(".py")
        if name in found or not name.startswith("pendula.fleet.") or not file.is_file():
            continue
        found[name] = ast.parse(file.read_text(encoding="utf-8"))
        waiting += [node.module for node in ast.walk(found[name]) if isinstance(node, ast.ImportFrom) and node.module]
    return found


def attributes_and_products(tree: ast.Module) -> set[str]:
    """Attribute names and names imported from `math`, and `**` and `@` if they are used."""
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("math", "numpy")
        for alias in node.names
    }
    operators = {type(node.op) for node in ast.walk(tree) if isinstance(node, ast.BinOp | ast.AugAssign)}
    return used | {name for name, kind in (("matmul", ast.MatMult), ("pow", ast.Pow)) if kind in operators}


@pytest.mark.req("FLT-MAP-18")
def test_the_compiler_calls_no_function_that_differs_between_processors() -> None:
    """Equal bytes in a sample could be luck, if no last bit meets the edge of a rounding; this excludes that."""
    modules = modules_of_the_compiler()

    used = {
        (name, attribute) for name, tree in modules.items() for attribute in attributes_and_products(tree) & DIFFERING
    }

    assert len(modules) > 15
    assert used <= WHOLE


ALONE: dict[str, dict[str, str]] = {
    **{f"without {name}": {"NPY_DISABLE_CPU_FEATURES": name} for name in optional_features()},
    "hash seed": {"PYTHONHASHSEED": "4294967295"},
    "random hash seed": {"PYTHONHASHSEED": "random"},
    "one thread": dict.fromkeys(THREADS, "1"),
    "eight threads": dict.fromkeys(THREADS, "8"),
    "plain C library": {"GLIBC_TUNABLES": PLAIN_LIBRARY},
    "no assertions": {"PYTHONOPTIMIZE": "2"},
    "another language": {"LC_ALL": "C", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
}


@pytest.mark.long
@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize("name", ALONE)
def test_no_single_factor_changes_the_bytes(name: str) -> None:
    here, there = started(), started(**ALONE[name])

    assert reported(there)[1] == reported(here)[1]
