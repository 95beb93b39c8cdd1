"""Fast time: a policy whose objects age in minutes instead of weeks. The clock itself is real.

So a visitor can watch an object age, while other jobs keep their times.
"""

from msgspec.structs import replace

from pendula.governance.machines import Machine
from pendula.governance.model import DAY_US
from pendula.jobs.model import SECOND, Policy

DAY_IS_US = 30 * SECOND
LEASE_SEC = 8
RETENTION_DAYS = 1  # a day of the demo is years for its objects


def with_fast_clock(policy: Policy) -> Policy:
    """The policy with a day of half a minute, and a short retention of finished jobs."""
    machines = {kind: _scaled_machine(machine) for kind, machine in policy.machines.items()}
    limits = replace(policy.limits, uncertainty_ttl=scaled(policy.limits.uncertainty_ttl))
    return replace(policy, machines=machines, limits=limits, retention_days=min(policy.retention_days, RETENTION_DAYS))


def scaled(length: int) -> int:
    return max(SECOND, length * DAY_IS_US // DAY_US)


def _scaled_machine(machine: Machine) -> Machine:
    follow = {place: replace(follow, after=scaled(follow.after)) for place, follow in machine.follow.items()}
    return replace(machine, follow=follow)
