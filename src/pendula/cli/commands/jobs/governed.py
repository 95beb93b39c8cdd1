"""`pendula jobs objects`, `gates` and `rollbacks`: governed objects of a store or a server."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pendula.cli.commands.jobs.message_options import json_given
from pendula.cli.commands.jobs.target import Target, command, members
from pendula.cli.output import example
from pendula.kernel.errors import WrongUsage

if TYPE_CHECKING:
    from pendula.governance import GovernedObjects
    from pendula.jobs.messages import Message

TypeArgument = Annotated[str, typer.Argument(metavar="TYPE", help="memory, experience, cognition.", show_default=False)]
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="The id of the object.", show_default=False)]
UserOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The acting user, for the trail.", show_default="you; with --url the token's name"
    ),
]
ReasonOption = Annotated[str | None, typer.Option(metavar="TEXT", help="Why, for the trail.", show_default=False)]
WhyOption = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the trail.", show_default=False)]
EvidenceOption = Annotated[
    list[str] | None,
    typer.Option("--evidence", metavar="REF", help="A reference as evidence; may be repeated.", show_default=False),
]
UnknownOption = Annotated[
    str | None,
    typer.Option(metavar="KIND", help="multipath, out_of_scope or ontic_unknowable.", show_default=False),
]
VersionOption = Annotated[
    int | None,
    typer.Option("--at-version", metavar="N", help="Fail unless the object has this version.", show_default=False),
]


ExpiresOption = Annotated[str | None, typer.Option(metavar="TIME", help="When it may be archived.", show_default=False)]
ReviewOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Time between reviews: P7D.", show_default=False)
]
HalfLifeOption = Annotated[
    str | None, typer.Option(metavar="DURATION", help="Half-life without use: P30D.", show_default=False)
]
FalsifyOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="The condition that would refute it.", show_default=False)
]
MembersOption = Annotated[
    str | None, typer.Option("--members", metavar="JSON", help="Other members, as a JSON object.", show_default=False)
]


def register(jobs: typer.Typer) -> None:
    at = "--db sqlite:///jobs.db"
    group = typer.Typer(
        no_args_is_help=True,
        epilog=example(f"pendula jobs objects list memory {at}", f"pendula jobs objects why memory mem_1 {at}"),
    )
    command(group, "create", f"pendula jobs objects create memory mem_1 --evidence doc_7 --risk high {at}")(create)
    command(group, "show", f"pendula jobs objects show memory mem_1 {at} --json")(show)
    command(group, "list", f"pendula jobs objects list cognition --place stale/uncertain {at}")(list_)
    command(group, "why", f"pendula jobs objects why memory mem_1 {at}")(why)
    command(group, "evidence", f"pendula jobs objects evidence memory mem_1 doc_8 doc_9 {at}")(evidence)
    command(
        group, "decide", f"pendula jobs objects decide memory mem_1 verify passed --reason 'read it' --user mia {at}"
    )(decide)
    command(
        group,
        "amend",
        f"pendula jobs objects amend cognition cg_1 --expires-at 2027-01-01T00:00:00Z --reason 'at last' {at}",
    )(amend)
    command(group, "refill", f"pendula jobs objects refill cognition cg_1 --reason 'new method' --budget 2 {at}")(
        refill
    )
    command(group, "rollback-finished", f"pendula jobs objects rollback-finished memory mem_1 {at}")(rollback_finished)
    jobs.add_typer(group, name="objects", help="Governed objects: states, evidence, budgets, explanations.")
    group = typer.Typer(
        no_args_is_help=True,
        epilog=example(
            f"pendula jobs gates list {at}", f"pendula jobs gates set risk_gate limit --reason 'careful' {at}"
        ),
    )
    command(group, "list", f"pendula jobs gates list --scope memory:mem_1 {at}")(list_gates)
    command(
        group,
        "set",
        f"pendula jobs gates set risk_gate pass --reason 'all is calm' {at}",
        f"pendula jobs gates set persona_conflict_gate block --scope memory:mem_1 --reason 'not her' --user mia {at}",
    )(set_gate)
    jobs.add_typer(group, name="gates", help="Gates that high-risk changes of governed objects must pass.")
    command(jobs, "rollbacks", f"pendula jobs rollbacks {at}")(rollbacks)


@contextmanager
def governed_objects(target: Target, user: str | None = None) -> "Iterator[GovernedObjects]":
    """The governed objects of the store or server, optionally in the name of a user."""
    from pendula.governance import governed

    name = members(user=user).get("user")
    if name is not None and not name.strip():
        raise WrongUsage("--user must be a name")
    with target.scheduler() as scheduler:
        yield governed(scheduler) if name is None else governed(scheduler).as_user(name)


def create(
    target: Target,
    object_type: TypeArgument,
    object_id: IdArgument,
    status: Annotated[str | None, typer.Option(metavar="STATE", help="Its state.", show_default="the first")] = None,
    epistemic_state: Annotated[
        str | None, typer.Option(metavar="WORD", help="supported, uncertain, refuted.", show_default=False)
    ] = None,
    risk: Annotated[str | None, typer.Option(metavar="TIER", help="low, medium, high.", show_default="low")] = None,
    impact: Annotated[
        str | None, typer.Option(metavar="TIER", help="low, medium, high, critical.", show_default="low")
    ] = None,
    evidence: EvidenceOption = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="REF", help="A source: memory:mem_1; may be repeated.", show_default=False),
    ] = None,
    expires_at: ExpiresOption = None,
    review_interval: ReviewOption = None,
    half_life: HalfLifeOption = None,
    falsify_if: FalsifyOption = None,
    unknown_type: UnknownOption = None,
    uncertainty_ttl: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long it may be uncertain.", show_default="P7D")
    ] = None,
    budget: Annotated[int | None, typer.Option(metavar="N", help="Verifications while uncertain.")] = None,
    more: MembersOption = None,
    reason: ReasonOption = None,
    user: UserOption = None,
) -> None:
    """Put an object under governance and enqueue its first job."""
    given = members(
        status=status,
        epistemic_state=epistemic_state,
        risk_tier=risk,
        impact_tier=impact,
        evidence_refs=evidence,
        source_refs=source,
        expires_at=expires_at,
        review_interval=review_interval,
        half_life=half_life,
        falsify_if=falsify_if,
        unknown_type=unknown_type,
        uncertainty_ttl=uncertainty_ttl,
        auto_verify_budget=budget,
        reason=reason,
    )
    with governed_objects(target, user) as objects:
        reply = _plain(objects.create(*_about(object_type, object_id), **{**_more(more), **given}))
    target.out.result(reply, lambda: _tables().stored(reply))


def show(target: Target, object_type: TypeArgument, object_id: IdArgument) -> None:
    """Show an object with its gates, its latest decisions and its rollbacks."""
    with governed_objects(target) as objects:
        reply = _plain(objects.show(*_about(object_type, object_id)))
    target.out.result(reply, lambda: _tables().governed(reply))


def list_(
    target: Target,
    object_type: TypeArgument,
    place: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Only in this state: active, active/supported.", show_default=False),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="1 to 1000.", show_default="100")] = None,
    after: Annotated[str | None, typer.Option(metavar="ID", help="The last id of the previous page.")] = None,
) -> None:
    """List the governed objects of a type, by id."""
    query = members(object_type=object_type, place=place, limit=limit, after=after)
    with governed_objects(target) as objects:
        reply = _plain(objects.list(query.pop("object_type"), **query))
    target.out.result(reply, lambda: _tables().page(reply))


def why(target: Target, object_type: TypeArgument, object_id: IdArgument) -> None:
    """Explain why an object is in its state, what comes next and when, and any obstacle."""
    with governed_objects(target) as objects:
        reply = _plain(objects.why(*_about(object_type, object_id)))
    target.out.result(reply, lambda: reply["sentence"])


def evidence(
    target: Target,
    object_type: TypeArgument,
    object_id: IdArgument,
    refs: Annotated[list[str], typer.Argument(metavar="REF…", help="References.", show_default=False)],
    unknown_type: UnknownOption = None,
    at_version: VersionOption = None,
    reason: ReasonOption = None,
    user: UserOption = None,
) -> None:
    """Attach references to an object. With --unknown-type they can reopen an object closed as unknowable."""
    given = members(unknown_type=unknown_type, version=at_version, reason=reason, refs=refs)
    with governed_objects(target, user) as objects:
        reply = _plain(objects.attach_evidence(*_about(object_type, object_id), *given.pop("refs"), **given))
    target.out.result(reply, lambda: _tables().stored(reply))


def decide(
    target: Target,
    object_type: TypeArgument,
    object_id: IdArgument,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="verify, revalidate, use, …", show_default=False)],
    finding: Annotated[str, typer.Argument(metavar="FINDING", help="passed, refuted, used, …", show_default=False)],
    reason: WhyOption,
    evidence: EvidenceOption = None,
    unknown_type: UnknownOption = None,
    at_version: VersionOption = None,
    user: UserOption = None,
) -> None:
    """Apply the finding of a person, through the same state machine and gates as a job."""
    given = members(
        action=action,
        finding=finding,
        reason=reason,
        evidence_refs=evidence,
        unknown_type=unknown_type,
        version=at_version,
    )
    with governed_objects(target, user) as objects:
        reply = _plain(
            objects.decide(*_about(object_type, object_id), given.pop("action"), given.pop("finding"), **given)
        )
    target.out.result(reply, lambda: _tables().decided(reply))


def amend(
    target: Target,
    object_type: TypeArgument,
    object_id: IdArgument,
    reason: WhyOption,
    expires_at: ExpiresOption = None,
    review_due_at: Annotated[
        str | None, typer.Option(metavar="TIME", help="The next review.", show_default=False)
    ] = None,
    review_interval: ReviewOption = None,
    half_life: HalfLifeOption = None,
    falsify_if: FalsifyOption = None,
    risk: Annotated[str | None, typer.Option(metavar="TIER", help="A higher one.", show_default=False)] = None,
    impact: Annotated[str | None, typer.Option(metavar="TIER", help="A higher one.", show_default=False)] = None,
    at_version: VersionOption = None,
    user: UserOption = None,
) -> None:
    """Change an object as a named user: its dates, falsify_if, a higher tier."""
    given = members(
        reason=reason,
        expires_at=expires_at,
        review_due_at=review_due_at,
        review_interval=review_interval,
        half_life=half_life,
        falsify_if=falsify_if,
        risk_tier=risk,
        impact_tier=impact,
        version=at_version,
    )
    with governed_objects(target, user) as objects:
        reply = _plain(objects.amend(*_about(object_type, object_id), given.pop("reason"), **given))
    target.out.result(reply, lambda: _tables().stored(reply))


def refill(
    target: Target,
    object_type: TypeArgument,
    object_id: IdArgument,
    reason: WhyOption,
    budget: Annotated[int | None, typer.Option(metavar="N", help="Units.", show_default="the initial budget")] = None,
    user: UserOption = None,
) -> None:
    """Refill the verification budget of an object, as a named user."""
    given = members(reason=reason, budget=budget)
    with governed_objects(target, user) as objects:
        reply = _plain(objects.refill(*_about(object_type, object_id), given.pop("reason"), **given))
    target.out.result(reply, lambda: _tables().stored(reply))


def rollback_finished(
    target: Target,
    object_type: TypeArgument,
    object_id: IdArgument,
    reason: ReasonOption = None,
    user: UserOption = None,
) -> None:
    """Report that the rollback of everything built on an object is finished; it may be archived."""
    with governed_objects(target, user) as objects:
        reply = _plain(objects.rollback_finished(*_about(object_type, object_id), **members(reason=reason)))
    target.out.result(reply, lambda: _tables().rolled_back(reply))


def list_gates(
    target: Target,
    scope: Annotated[
        str | None,
        typer.Option(metavar="SCOPE", help="Gates that apply to memory:mem_1.", show_default="all"),
    ] = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="1 to 1000.", show_default="100")] = None,
    after: Annotated[str | None, typer.Option(metavar="GATE", help="The last gate of the previous page.")] = None,
) -> None:
    """List gates with verdict, time and user; gates for all objects first."""
    with governed_objects(target) as objects:
        reply = _plain(objects.gates(**members(scope=scope, limit=limit, after=after)))
    target.out.result(reply, lambda: _tables().gates(reply))


def set_gate(
    target: Target,
    gate: Annotated[
        str,
        typer.Argument(
            metavar="GATE",
            help="persona_conflict_gate, risk_gate, cognition_gate, social_gate.",
            show_default=False,
        ),
    ],
    verdict: Annotated[
        str,
        typer.Argument(metavar="VERDICT", help="pass, block, limit, degrade, defer, override.", show_default=False),
    ],
    reason: WhyOption,
    scope: Annotated[
        str | None, typer.Option(metavar="SCOPE", help="One object: memory:mem_1.", show_default="all objects")
    ] = None,
    user: UserOption = None,
) -> None:
    """Set the verdict of a gate, for all objects or for one. An override needs a named user."""
    given = members(gate=gate, verdict=verdict, reason=reason, scope=scope)
    with governed_objects(target, user) as objects:
        reply = _plain(objects.set_gate(given.pop("gate"), given.pop("verdict"), given.pop("reason"), **given))
    target.out.result(reply, lambda: _tables().gate(reply["gate"]))


def rollbacks(
    target: Target,
    limit: Annotated[int | None, typer.Option(metavar="N", help="1 to 1000.", show_default="100")] = None,
) -> None:
    """List unfinished rollbacks, the oldest first."""
    with governed_objects(target) as objects:
        reply = _plain(objects.rollbacks(**members(limit=limit)))
    target.out.result(reply, lambda: _tables().rollbacks(reply))


def _about(object_type: str, object_id: str) -> tuple[str, str]:
    given = members(object_type=object_type, object_id=object_id)
    return given["object_type"], given["object_id"]


def _more(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    value = json_given("--members", text)
    if not isinstance(value, dict):
        raise WrongUsage("--members must be a JSON object", value=text)
    return {str(name): member for name, member in value.items()}


def _plain(message: "Message") -> dict[str, Any]:
    """Imported lazily, for a fast start."""
    from pendula.jobs.messages import plain

    return plain(message)


def _tables() -> Any:
    """Imported lazily: it loads rich."""
    from pendula.cli.commands.jobs import governed_tables

    return governed_tables
