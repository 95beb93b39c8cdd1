"""Read submitted instances: mark their ids as used and store unknown fields."""

from pendula.actions.model import Code, Instance
from pendula.actions.rules.validation import Fault, id_of, read_instance
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json


def read_new(world: WorldState, raw: object, needs_time: bool) -> Instance | Fault:
    """Read an instance, or its fault, and mark its id as used; a rejected instance uses its id, too."""
    extra = None
    if type(raw) is Instance and raw.params is None and (type(raw.t) is int or (raw.t is None and not needs_time)):
        instance = raw
    else:
        read = read_instance(raw, needs_time)
        if isinstance(read, Fault):
            world.used_ids.update(filter(None, (id_of(raw),)))
            return read
        instance, extra = read
    if instance.id in world.used_ids:
        return Fault(Code.DUPLICATE_ACTION_ID, "id_in_use", {"id": instance.id})
    world.used_ids.add(instance.id)
    if extra:
        _store_extra(world, instance, extra)
    return instance


def _store_extra(world: WorldState, instance: Instance, extra: dict[str, Json]) -> None:
    """Unknown fields go into the meta of the first start; each name is reported once."""
    world.extras[instance.id] = extra
    new = sorted(extra.keys() - world.reported)
    if new:
        world.reported.update(new)
        world.writer.diagnose(Code.UNKNOWN_FIELDS, instance.id, "unknown_fields", {"fields": [*new]})
