"""Set a gate, for all objects or for one, with an audit event that has the actor and the reason."""

from pendula.jobs.audit import GATE_EVENT, OVERRIDE_EVENT, GovernanceEvent
from pendula.jobs.governance.bodies import read_gate
from pendula.jobs.governing.verdicts import user_required
from pendula.jobs.governing.views import gate_json
from pendula.jobs.model import Actor, Policy
from pendula.jobs.objects.gates import Gate
from pendula.jobs.objects.reasons import stated
from pendula.jobs.request_reading import Faults
from pendula.jobs.store.protocol import Writer
from pendula.jobs.transaction.replies import Answer, Body, Reply


def set_gate(tx: Writer, body: Body, actor: Actor, policy: Policy, now: int) -> Answer:
    """Set the verdict of a gate. `override` requires a named user, whom the audit event records."""
    request = read_gate(body, policy.machines)
    if isinstance(request, Faults):
        return request.refusal()
    is_override = request.verdict == "override"
    if is_override and not (actor.type == "user" and actor.id):
        return user_required("override a gate", {"gate": request.name})
    gates = tx.governance.gates(request.scope)
    before = next((gate for gate in gates if (gate.name, gate.scope) == (request.name, request.scope)), None)
    gate = Gate(
        name=request.name,
        scope=request.scope,
        verdict=request.verdict,
        version=1 if before is None else before.version + 1,
        set_at=now,
        set_by=actor.id,
        reason=request.reason,
        override_by=actor.id if is_override else None,
    )
    tx.governance.put_gate(gate)
    kind, _, name = request.scope.partition(":")
    event = GovernanceEvent(
        event_type=OVERRIDE_EVENT if is_override else GATE_EVENT,
        object_type=kind if name else "decision",
        object_id=name or request.scope,
        before=None if before is None else gate_json(before),
        after=gate_json(gate),
        reason=stated(request.reason),
        evidence=(f"gate:{request.name}",),
    )
    tx.governance_event(event, actor, now)
    return Reply(200, {"gate": gate_json(gate)})
