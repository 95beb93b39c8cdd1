"""Compiled maps by their hash, for engines that know no more than their configuration.

Whoever has a map puts it on the shelf: the command line, the server, a run that reads the file beside its journal. What
nobody has put there is compiled, once. A map is what its hash says, so it does not matter who brought it.
"""

from collections import OrderedDict

from pendula.fleet.commands import Config
from pendula.fleet.site.compiled_map import CompiledMap
from pendula.kernel.errors import InputRefused

# Maps of other fleets in the same process; the one that was not asked for longest goes first.
_MOST = 16
_shelf: OrderedDict[str, CompiledMap] = OrderedDict()


class OtherMap(InputRefused):
    """The compiled map is not the one that a fleet was configured with. Facts: `expected`, `found`."""

    code = "other_map"


def put(site: CompiledMap) -> None:
    """Keep a compiled map for the engines that name it."""
    _shelf[site.compiled_hash] = site
    _shelf.move_to_end(site.compiled_hash)
    while len(_shelf) > _MOST:
        _shelf.popitem(last=False)


def site_of(config: Config) -> CompiledMap:
    """The map a fleet is configured with; raises `OtherMap` where what its source compiles to is another one."""
    site = _shelf.get(config.compiled_hash) or _compiled(config)
    if site.compiled_hash != config.compiled_hash:
        raise OtherMap(
            f"The fleet is configured for the compiled map {config.compiled_hash}, its source gives"
            f" {site.compiled_hash}: it was compiled by another version, or the configuration was changed",
            expected=config.compiled_hash,
            found=site.compiled_hash,
        )
    put(site)
    return site


def _compiled(config: Config) -> CompiledMap:
    # The one place where a running fleet may need the compiler: its map was thrown away.
    from pendula.fleet.compiler.compile import compile_map

    return compile_map(config.source, config.profiles, config.compile_params)
