"""Why an item was selected: the step that chose it, with weights, credits, pool and draws at that moment; counters."""

import msgspec

from pendula.kernel.canonical import Json
from pendula.kernel.engine import Reason
from pendula.playback.choosing import new_artwork
from pendula.playback.choosing.programme import Programme
from pendula.playback.messages import View
from pendula.playback.model import (
    WSUM,
    Item,
    Levels,
    Origin,
    Trace,
)
from pendula.playback.settings import PickMode


def why(programme: Programme, item: Item) -> Reason:
    """The reason for an item of the present epoch; for an earlier one only its origin."""
    trace = item.trace or Trace(new_artwork.EMPTY)
    facts: dict[str, Json] = {"id": item.id, "ordinal": item.ordinal, "epoch_id": item.epoch_id}
    if item.epoch_id != programme.epoch_id:
        sentence = f"Item {item.ordinal} is from epoch {item.epoch_id}; the weights of that epoch are no longer known."
        return Reason("earlier_epoch", sentence, {**facts, "origin": item.origin.value})
    drawn = _new_artwork_step(programme, trace)
    match item.origin:
        case Origin.NAE:
            return Reason("new_artwork", f"New artwork was selected: {_chosen(trace)}.", facts, drawn)
        case Origin.NAE_FALLBACK:
            sentence = "The selected new artwork had just been shown, so the channels gave an item instead."
            return Reason("new_artwork_just_shown", sentence, facts, (*drawn, *_base(programme, item, trace)))
        case Origin.PINNED:
            return Reason("pinned", "It was pinned.", facts)
        case Origin.BASE:
            sentence = f"It was the turn of channel {item.channel!r}, and this was its next record."
            return Reason("turn_of_channel", sentence, facts, (*drawn, *_base(programme, item, trace)))


def why_on(programme: Programme, on: View) -> Reason:
    """Why this is shown. It may not be in the history: a reset clears it, and pinned items have no ordinal."""
    facts: dict[str, Json] = {"id": on.id, "ordinal": on.ordinal, "epoch_id": on.epoch_id}
    if on.origin == Origin.PINNED:
        return Reason("pinned", "It was pinned.", facts)
    item = by_ordinal(programme, on.ordinal, on.epoch_id)
    if item is None:
        sentence = f"It is from epoch {on.epoch_id}; the weights of that epoch are no longer known."
        return Reason("earlier_epoch", sentence, {**facts, "origin": on.origin})
    return why(programme, item)


def by_ordinal(programme: Programme, ordinal: int, epoch_id: int | None = None) -> Item | None:
    """The item with this ordinal, by default of the present epoch; None if neither history nor lookahead holds it."""
    epoch = programme.epoch_id if epoch_id is None else epoch_id
    for item in (*programme.history, *programme.lookahead):
        if (item.epoch_id, item.ordinal) == (epoch, ordinal):
            return item
    return None


def _new_artwork_step(programme: Programme, trace: Trace) -> tuple[Reason, ...]:
    settings = programme.snapshot.settings.nae
    if trace.nae_draw is None:
        why_not = "New artwork events are off." if not settings.enabled else "The pool of new artwork was empty."
        return (Reason("no_new_artwork", f"{why_not} No number was drawn.", {"pool": []}),)
    chance = new_artwork.probability(trace.pool)
    facts: dict[str, Json] = {"draw": trace.nae_draw, "probability_64": chance, "pool": _pool(trace.pool)}
    # In whole per cent, halves up; the facts have the exact values.
    had = f"New artwork had a {(200 * chance + 64) // 128} % chance"
    if new_artwork.triggers(trace.nae_draw, trace.pool):
        return (Reason("new_artwork_drawn", f"{had} and was drawn.", facts),)
    return (Reason("new_artwork_not_drawn", f"{had} and was not drawn.", facts),)


def _chosen(trace: Trace) -> str:
    entry = new_artwork.choose(trace.pool)[0]
    return f"{entry.id} had the highest priority; ties go to the earlier insertion"


def _base(programme: Programme, item: Item, trace: Trace) -> tuple[Reason, ...]:
    return (_turn(programme, item, trace), _record(programme, item, trace))


def _turn(programme: Programme, item: Item, trace: Trace) -> Reason:
    generator = programme.generator
    names = generator.names
    passed = [names[index] for index in trace.unreadable]
    if item.step is None:
        sentence = f"No step selected a readable channel, so the first readable one gave the item: {item.channel!r}."
        return Reason("first_readable", sentence, {"unreadable": passed})
    if item.step > generator.round.taken:
        return Reason("unknown_item", f"Step {item.step} has not been taken yet.", {"step": item.step})
    if item.step <= generator.round.anchor:
        sentence = f"Step {item.step} selected channel {item.channel!r}; its credits are no longer known."
        return Reason("credits_forgotten", sentence, {"step": item.step, "unreadable": passed})
    before = generator.round.credits_at(item.step - 1)
    earned = [credit + weight for credit, weight in zip(before, generator.weights, strict=True)]
    assert item.channel_index is not None
    facts: dict[str, Json] = {
        "step": item.step,
        "weights": dict(zip(names, generator.weights, strict=True)),
        "credits_before": dict(zip(names, before, strict=True)),
        "credits_at_choice": dict(zip(names, earned, strict=True)),
        "credit_after": earned[item.channel_index] - WSUM,
        "unreadable": passed,
    }
    sentence = (
        f"In step {item.step} channel {item.channel!r} had the largest credit, {earned[item.channel_index]}; "
        "ties go to the channel followed first."
    )
    return Reason("largest_credit", sentence, facts)


def _record(programme: Programme, item: Item, trace: Trace) -> Reason:
    pick = programme.snapshot.settings.pick
    facts: dict[str, Json] = {
        "at": item.at,
        "skipped": list(trace.skipped),
        "damaged": list(trace.bad),
        "drawn": list(trace.picked),
    }
    tail = f", after {len(trace.skipped)} skipped repeats" if trace.skipped else ""
    if pick.mode is PickMode.RECENCY:
        return Reason("next_by_age", f"The cursor reached record {item.at}{tail}.", facts)
    assert item.channel_index is not None
    span = min(pick.r, programme.generator.shelves[item.channel_index].count)
    return Reason("drawn_at_random", f"Record {item.at} was drawn from the newest {span}{tail}.", facts)


def _pool(pool: Levels) -> list[Json]:
    return [
        {"id": entry.id, "number": entry.number, "priority_64": priority}
        for priority, level in zip(new_artwork.PRIORITIES, pool, strict=True)
        for entry in level
    ]


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
