"""Read a submitted instance: its id is taken, unknown fields are kept."""

from pendula.actions.model import Code, Instance
from pendula.actions.rules.validation import Fault, id_of, read_instance
from pendula.actions.state.world_state import WorldState
from pendula.kernel.canonical import Json


def read_new(world: WorldState, raw: object, needs_time: bool) -> Instance | Fault:
    """The instance, whose id is now taken, or its fault."""
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
        _keep_extra(world, instance, extra)
    return instance


def _keep_extra(world: WorldState, instance: Instance, extra: dict[str, Json]) -> None:
    """Unknown fields go into the meta of the first start; each name is reported once."""
    world.extras[instance.id] = extra
    new = sorted(extra.keys() - world.reported)
    if new:
        world.reported.update(new)
        world.writer.diagnose(Code.UNKNOWN_FIELDS, instance.id, "unknown_fields", {"fields": [*new]})
