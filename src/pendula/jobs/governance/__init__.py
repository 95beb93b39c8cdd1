"""Governed objects in a store: all calls that change them, from jobs and from people.

service           `Governance`: every call
governed_objects  `GovernedObjects`: the same as Python methods
steps             the steps of a governed job: begin, finish, settle
object_changes    changes by people: create, attach evidence, decide, amend, refill
gate_setting      setting a gate, for all objects or for one
bodies            request bodies, with all their faults
why               why an object is in its state, and what comes next
"""

from pendula.jobs.governance.governed_objects import GovernedObjects
from pendula.jobs.governance.service import Governance

__all__ = ["Governance", "GovernedObjects"]
