"""Choice of the receiver: reach of the sender, then chains, weights of groups, and a group at random."""

from random import Random

from tests.credit.oracle.profiles import Profile
from tests.credit.oracle.world import Lines, World

DEPTH, MOST_VISITED = 3, 200


def reachable(live: Lines, sender: str) -> list[str]:
    """Breadth first from debtor to creditor, three hops deep, at most 200 nodes with the sender."""
    seen, level = [sender], [sender]
    for _ in range(DEPTH):
        following: list[str] = []
        for node in level:
            for neighbour in sorted(creditor for _, creditor, debtor in live if debtor == node):
                if neighbour not in seen and len(seen) < MOST_VISITED:
                    seen.append(neighbour)
                    following.append(neighbour)
        level = following
    return sorted(seen[1:])


def receiver(world: World, live: Lines, sender: str, profile: Profile, draw: Random) -> str | None:
    """Draws in the order of the rules; a step that does not apply draws nothing."""
    within_reach = reachable(live, sender)
    if not within_reach:
        return None
    members = along_chains(world, sender, profile, within_reach, draw)
    if not members and profile.cluster_bias is not None and world.participants[sender].group is not None:
        members = by_cluster(world, sender, profile.cluster_bias, within_reach, draw)
    if not members:
        members = by_weight(world, profile, within_reach, draw)
    if not members:
        members = by_any_group(world, within_reach, draw)
    return draw.choice(members)


def members_of(world: World, group: str, within_reach: list[str]) -> list[str]:
    return [who for who in within_reach if world.participants[who].group == group]


def along_chains(world: World, sender: str, profile: Profile, within_reach: list[str], draw: Random) -> list[str]:
    flow = world.section("flow")
    group = world.participants[sender].group
    if flow.get("enabled") is not True or group is None or not profile.chains:
        return []
    affinity = float(flow.get("default_affinity", 0.7)) if profile.affinity is None else profile.affinity
    if draw.random() >= affinity:
        return []
    targets = [target for start, target in profile.chains if start == group]
    return members_of(world, draw.choice(targets), within_reach) if targets else []


def by_cluster(world: World, sender: str, bias: float, within_reach: list[str], draw: Random) -> list[str]:
    """The own group or the others; where one of the two is out of reach, the other."""
    own = world.participants[sender].group
    inside = [who for who in within_reach if world.participants[who].group == own]
    outside = [who for who in within_reach if who not in inside]
    if draw.random() < bias:
        return inside or outside
    return outside or inside


def by_weight(world: World, profile: Profile, within_reach: list[str], draw: Random) -> list[str]:
    weights = [(group, weight) for group, weight in sorted(profile.group_weights.items()) if weight > 0]
    if not weights:
        return []
    total = 0.0
    for _, weight in weights:
        total += weight
    mark, running = draw.random() * total, 0.0
    for group, weight in weights:
        running += weight
        if running >= mark:
            return members_of(world, group, within_reach)
    return members_of(world, weights[-1][0], within_reach)


def by_any_group(world: World, within_reach: list[str], draw: Random) -> list[str]:
    groups = sorted({person.group for person in world.participants.values() if person.group is not None})
    draw.shuffle(groups)
    for group in groups:
        members = members_of(world, group, within_reach)
        if members:
            return members
    return within_reach
