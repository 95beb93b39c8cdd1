"""The file of a compiled map: the example of the contract, its hash, and damaged files."""

import json
import random
from decimal import Decimal
from hashlib import sha256

import numpy as np
import pytest

from pendula.documents import read_bytes
from pendula.fleet import CompiledMap, MapDamaged, compile_map, from_bytes, read_source_map, to_bytes
from pendula.fleet.compiler.samples import FL_STD, hall_demo
from pendula.fleet.map.site_file import cell_form
from pendula.kernel.canonical import encode
from tests.fleet.documents import GOLDEN
from tests.fleet.sites import SCENES, random_site, scene


@pytest.mark.req("FLT-MAP-2", "FLT-MAP-11", "FLT-API-3")
def test_the_example_of_the_contract_compiles_from_its_source() -> None:
    """13.2 compiled for FL-STD gives 13.3; windows of the example are without slack."""
    source = read_source_map(read_bytes((GOLDEN / "SourceMap.json").read_bytes()))
    golden = json.loads((GOLDEN / "CompiledMap.json").read_text(), parse_float=Decimal)
    made = json.loads(to_bytes(compile_map(source, [FL_STD])), parse_float=Decimal)

    for part in ("mapId", "units", "edgeConflictGroups", "edgeGroups", "criticalSections", "contractVersion"):
        assert made[part] == golden[part], part
    for part in ("nodes", "edges", "conflicts"):
        assert [
            {name: item[name] for name in two} for item, two in zip(made[part], golden[part], strict=True)
        ] == golden[part]
    for zone, two in zip(made["nodeZones"], golden["nodeZones"], strict=True):
        assert (zone["nodeId"], zone["radiusM"], zone["overlapsNodes"]) == (
            two["nodeId"],
            two["radiusM"],
            two["overlapsNodes"],
        )
        assert [window["edgeKey"] for window in zone["windows"]] == [window["edgeKey"] for window in two["windows"]]
        for window, other in zip(zone["windows"], two["windows"], strict=True):
            assert float(window["s0M"]) == pytest.approx(float(other["s0M"]), abs=0.001)
            assert float(window["s1M"]) == pytest.approx(float(other["s1M"]), abs=0.001)
    found = {(finding["code"], encode(finding["details"])) for finding in made["validation"]}
    for finding in golden["validation"]:
        details = [item for item in made["validation"] if item["code"] == finding["code"]]
        assert any(finding["details"].items() <= item["details"].items() for item in details), finding
    assert len(found) == len(made["validation"])


@pytest.mark.req("FLT-EVO-1", "FLT-EVO-2", "FLT-EVO-4")
def test_the_cell_of_the_contract_is_reproduced() -> None:
    site = scene("hall-demo")
    golden = json.loads((GOLDEN / "Cell.json").read_text(), parse_float=Decimal)

    made = cell_form(site, int(site.cells.first[site.edge_number["LM1->LM2"]]) + 7)

    for part in (
        "cellId",
        "edgeKey",
        "s0M",
        "s1M",
        "dir",
        "stand",
        "standReasons",
        "criticalSectionId",
        "followingSet",
    ):
        assert made[part] == golden[part], part
    assert set(golden["conflictSet"]) <= set(made["conflictSet"])
    assert sum(name.startswith("LM2->LM1#") for name in made["conflictSet"]) == 20


@pytest.mark.req("FLT-MAP-18")
@pytest.mark.parametrize("name", SCENES)
def test_a_map_is_read_back_byte_for_byte(name: str) -> None:
    data = to_bytes(scene(name))

    again = from_bytes(data)

    assert to_bytes(again) == data
    assert again.compiled_hash == scene(name).compiled_hash


@pytest.mark.req("FLT-MAP-19")
def test_the_hash_is_that_of_the_bytes_without_it() -> None:
    data = to_bytes(scene("hall-demo"))
    form = json.loads(data, parse_float=Decimal)
    claimed = form.pop("compiledMapHash")

    assert claimed == "sha256:" + sha256(encode(form)).hexdigest()
    assert encode({**form, "compiledMapHash": claimed}) == data


@pytest.mark.req("FLT-MAP-16")
def test_every_damaged_byte_is_noticed() -> None:
    data = to_bytes(scene("straight-lane"))
    draw = random.Random(5)

    for _ in range(200):
        at = draw.randrange(len(data))
        bad = data[:at] + bytes([data[at] ^ (1 << draw.randrange(7))]) + data[at + 1 :]
        with pytest.raises(MapDamaged):
            from_bytes(bad)
    for cut in (0, 1, 100, len(data) - 1):
        with pytest.raises(MapDamaged):
            from_bytes(data[:cut])


def test_the_loaded_map_answers_like_the_compiled_one() -> None:
    site = random_site(4)
    again = from_bytes(to_bytes(site))

    assert again.network == site.network
    assert np.array_equal(again.cells.quads, site.cells.quads)
    assert again.zones == site.zones
    assert again.named == site.named
    assert again.corridors == site.corridors
    assert again.standing == site.standing
    assert again.sections == site.sections
    assert (again.params, again.envelope, again.findings) == (site.params, site.envelope, site.findings)


def scenes_site() -> CompiledMap:
    return compile_map(hall_demo(), [FL_STD])


@pytest.mark.req("FLT-MAP-16")
def test_a_file_with_a_right_hash_and_wrong_parts_is_damaged() -> None:
    import json
    from decimal import Decimal
    from hashlib import sha256

    from pendula.kernel.canonical import encode

    form = json.loads(to_bytes(scenes_site()), parse_float=Decimal)
    del form["compiledMapHash"]
    form["edges"][0]["from"] = "NOWHERE"
    data = encode({**form, "compiledMapHash": "sha256:" + sha256(encode(form)).hexdigest()})
    with pytest.raises(MapDamaged):
        from_bytes(data)
