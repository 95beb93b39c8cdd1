"""Statistics of a programme: counters over all epochs, and the present epoch."""

import msgspec

from pendula.kernel.canonical import Json
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.programme import Programme


def stats(programme: Programme) -> dict[str, Json]:
    """Plain JSON values."""
    generator, settings = programme.generator, programme.snapshot.settings
    counts = generator.fold()
    base = sum(counts.channels.values()) + counts.others - counts.nae_fallback
    return {
        "global_seed": programme.seed,
        "epoch_id": programme.epoch_id,
        "ordinal": generator.ordinal,
        "resets": programme.resets,
        "last_reset": None if programme.last_reset is None else programme.last_reset.sentence,
        "generated": {
            "origins": {"base": base, "nae": counts.nae, "nae_fallback": counts.nae_fallback},
            "channels": {name: counts.channels.get(name, 0) for name in _known(programme)},
        },
        "weights": dict(zip(generator.names, generator.weights, strict=True)),
        "batches": programme.batches,
        "block_reads": _shelves(programme, "reads"),
        "cache_hits": _shelves(programme, "hits"),
        "repeats": counts.repeats,
        "nae": {
            "inserts": counts.inserts,
            "merges": counts.merges,
            "evictions": counts.evictions,
            "expiries": counts.expiries,
            "pool": new_artwork.size(generator.pool),
            "enabled": settings.nae.enabled,
        },
        "diagnostics": [msgspec.to_builtins(one) for one in programme.diagnostics],
    }


def _known(programme: Programme) -> list[str]:
    return list(dict.fromkeys((*programme.generator.names, *sorted(programme.generator.counts.channels))))


def _shelves(programme: Programme, name: str) -> int:
    present = sum(getattr(channel.shelf, name, 0) for channel in programme.snapshot.channels)
    return programme.read_before[name] + present
