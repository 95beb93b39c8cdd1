"""Resources that a truck holds at its position, in a node or on an edge, and where on its route it passes each."""

from pendula.fleet.driving.adoption import passed_um
from pendula.fleet.driving.records import Record
from pendula.fleet.driving.track import held_from_the_start
from pendula.fleet.driving.uses import NEVER_UM, Ground
from pendula.fleet.liveness.closures import Rest, kept_sections
from pendula.fleet.routing.planner import AtNode
from pendula.fleet.routing.route_plan import RoutePlan


def held_in_node(record: Record, node: int) -> dict[int, int]:
    """Resources of a truck in a node: its zone, the cells that lead into it and critical sections. A route from there
    passes only the cells."""
    site = record.site
    held = set(site.standing_set(node, record.short_um))
    held |= {site.token(number) for number in kept_sections(site, Rest(node, record.short_um))}
    return {resource: 0 if resource < len(site.cells) else NEVER_UM for resource in sorted(held)}


def held_at(record: Record, ground: Ground, plan: RoutePlan) -> dict[int, int]:
    """Resources of a truck at the start of a route, and where on that route it passes each."""
    if not isinstance(plan.start, AtNode):
        return held_from_the_start(ground, plan, record.short_um)
    return {
        resource: free if free < NEVER_UM else passed_um(ground, plan.whole, resource, 0, record.short_um)
        for resource, free in held_in_node(record, plan.start.node).items()
    }
