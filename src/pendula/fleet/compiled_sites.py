"""Cache of compiled maps by hash, for engines that only have their configuration.

The command line, the server and runs that read the file beside a journal put maps into it. Any other map is compiled
once. The hash identifies a map, so its origin does not matter.
"""

from collections import OrderedDict

from pendula.fleet.commands import Config
from pendula.fleet.map.site import CompiledMap
from pendula.kernel.errors import InputRefused

# Maps of all fleets in the process; the least recently used is evicted first.
_MOST_MAPS = 16
_cache: OrderedDict[str, CompiledMap] = OrderedDict()


class OtherMap(InputRefused):
    """The compiled map is not the one in the configuration of the fleet. Facts: `expected`, `found`."""

    code = "other_map"


def put(site: CompiledMap) -> None:
    """Cache a compiled map for the engines that name it."""
    _cache[site.compiled_hash] = site
    _cache.move_to_end(site.compiled_hash)
    while len(_cache) > _MOST_MAPS:
        _cache.popitem(last=False)


def site_of(config: Config) -> CompiledMap:
    """The map of a configuration; raises `OtherMap` if its source compiles to another one."""
    site = _cache.get(config.compiled_hash) or _compiled(config)
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
    # The only place where a running fleet may need the compiler: its map is not in the cache.
    from pendula.fleet.compiler.compile import compile_map

    return compile_map(config.source, config.profiles, config.compile_params)
