"""Fast time: a policy whose objects do in minutes what takes them weeks. The clock itself is the real one.

So a person can watch an object age, and jobs of other kinds keep their times.
"""

from msgspec.structs import replace

from pendula.jobs.model import SECOND, Policy
from pendula.jobs.objects.governed import DAY_US
from pendula.jobs.objects.machine import Machine

DAY_IS_US = 30 * SECOND
LEASE_SEC = 8
RETENTION_DAYS = 1  # a day of the example is years of its objects


def quickened(policy: Policy) -> Policy:
    """The same with a day of half a minute, and a trail of finished jobs that does not grow for ever."""
    machines = {kind: _quick(machine) for kind, machine in policy.machines.items()}
    limits = replace(policy.limits, uncertainty_ttl=quick(policy.limits.uncertainty_ttl))
    return replace(policy, machines=machines, limits=limits, retention_days=min(policy.retention_days, RETENTION_DAYS))


def quick(length: int) -> int:
    return max(SECOND, length * DAY_IS_US // DAY_US)


def _quick(machine: Machine) -> Machine:
    follow = {place: replace(one, after=quick(one.after)) for place, one in machine.follow.items()}
    return replace(machine, follow=follow)
