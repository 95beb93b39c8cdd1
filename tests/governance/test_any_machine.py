"""Every valid machine works: no finding breaks it, and every uncertain object has a date."""

from itertools import product
from random import Random

import pytest
from msgspec.structs import replace

from pendula.governance.decisions import Ending, How, conclude, enter, settle_verdict
from pendula.governance.machines import REFERENCE, Machine, faults
from pendula.governance.model import Governed
from pendula.jobs.reasons import Verdict
from tests.governance.governed_objects import NOW, context, governed

ACTIONS = ("verify", "revalidate", "decay", "archive", "reinstate-check", "use", "invalidate")
FINDINGS = ("passed", "inconclusive", "new_evidence", "refuted", "exhausted", "rolled_back", "a word of its own")


def _bent(machine: Machine, random: Random) -> Machine:
    """The machine with one change: a row removed, redirected or duplicated, or a set with one state more or less."""
    places, arrows = sorted(machine.trust), list(machine.arrows)
    match random.randrange(6):
        case 0:
            arrows.pop(random.randrange(len(arrows)))
        case 1:
            at = random.randrange(len(arrows))
            arrows[at] = replace(arrows[at], target=random.choice(places))
        case 2:
            arrows.append(replace(random.choice(arrows), source=random.choice(places), finding=random.choice(FINDINGS)))
        case 3:
            return replace(machine, uncertain=machine.uncertain ^ {random.choice(places)})
        case 4:
            return replace(machine, trust={**machine.trust, random.choice(places): random.randrange(6)})
        case _:
            return replace(
                machine, follow={**machine.follow, random.choice(places): random.choice([*machine.follow.values()])}
            )
    return replace(machine, arrows=tuple(arrows))


def _ends(subject: Governed, machine: Machine, action: str, finding: str) -> list[Ending]:
    question = context(action)
    entered = enter(subject, machine, question)
    if isinstance(entered, Ending):
        return [entered]
    own = settle_verdict(entered, machine, question)
    return [conclude(entered, machine, question, one) for one in (Verdict(finding, "said so", ("ev_2",)), own)]


@pytest.mark.req("JOB-SM-2", "JOB-GATE-9")
@pytest.mark.parametrize("kind", sorted(REFERENCE))
def test_a_valid_machine_works_and_gives_every_uncertain_object_a_date(kind: str) -> None:
    good = 0
    for seed in range(150):
        random = Random(seed)
        machine = _bent(_bent(REFERENCE[kind], random), random)
        if faults(machine, ACTIONS):
            continue
        good += 1
        for place, action, finding in product(sorted(machine.trust), ACTIONS, FINDINGS):
            subject = governed(kind, place, verify_budget_left=random.randrange(2))
            for ending in _ends(subject, machine, action, finding):
                after = ending.subject
                assert after.place in machine.trust
                dated = after.next_action_at is not None and after.next_action_at >= NOW
                is_over = after.place not in machine.follow and after.place not in machine.uncertain
                assert dated or is_over or ending.how is not How.ACK, (seed, place, action)
    assert good > 10
