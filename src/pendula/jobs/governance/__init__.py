"""Governed objects in a store: the one door for every change, by a job or by a person.

service        `Governance`: every call
governed_objects  `GovernedObjects`: the same as Python methods
steps          a governed job: begin, finish, and settle for what needs nobody
keeping        objects made, given evidence, decided about, refilled
gate_setting   gates set for everything or for one object
bodies         bodies in, with all their faults
why            why an object is where it is, and what comes next
"""

from pendula.jobs.governance.governed_objects import GovernedObjects
from pendula.jobs.governance.service import Governance

__all__ = ["Governance", "GovernedObjects"]
