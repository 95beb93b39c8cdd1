"""A run without a server: planned from a document, stepped, summarised in one result.

    settings = change_settings(Settings(), {"amount_cap": "500"})
    run = simulate(read_file("village.json"), seed=42, ticks=100, settings=settings)
    run.digests["ledger"]

The same seed, settings and commands give the same result, byte for byte, in one process or in many.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from pendula.credit.commands import BehaviourName, Commands, Config, Tick
from pendula.credit.engine import Run
from pendula.credit.events import ClearingDone, Event, Note, RunStatus, TxFailed, TxUpdated
from pendula.credit.model import Scenario, headless_name
from pendula.credit.money import atoms_of_sum, text_8
from pendula.credit.reading import Caution, read_with_warnings
from pendula.credit.sentences import no_result_sentence, note_sentence, sentence_of
from pendula.credit.settings import Settings
from pendula.credit.state.counters import Counters
from pendula.credit.tick.draft import ratio
from pendula.documents import Document
from pendula.kernel.canonical import Json, decode, digest, encode
from pendula.kernel.engine import CommandReader, Outcome, Outside
from pendula.kernel.errors import InputRefused

ENGINE_CODES = ("engine_unreachable", "engine_failed")

# Facts that tell warnings apart; notes that differ only in other facts repeat a warning.
SUBJECTS = ("profile", "equivalent", "behaviour", "event_index", "facts", "url", "cause", "status")

PLAIN_TICK = Tick()

Watch = Callable[[tuple[Event, ...]], None]


class RunRefused(InputRefused):
    """The run refused a command. Facts: `refusal`."""

    code = "run_refused"


class RunPlan(Struct, frozen=True):
    """A planned run: its configuration, the scenario, and warnings about both."""

    config: Config
    scenario: Scenario
    cautions: tuple[Caution, ...]
    seed_from: str

    @property
    def json(self) -> Json:
        """The configuration as stored in a journal."""
        return decode(encode(self.config))


class ClearingRow(Struct, frozen=True):
    """One clearing that cleared something; `optimum` only with the yardstick switched on."""

    tick: int
    equivalent: str
    reason: str
    cleared_cycles: int
    cleared_amount: str
    debt_reduction: str
    optimum: str | UnsetType = UNSET


class Diagnostic(Struct, frozen=True):
    """A warning. Repeats about the same subject are merged: `count` is their number, `last_tick` the latest."""

    code: str
    message: str
    facts: dict[str, Json] = {}
    count: int | UnsetType = UNSET
    last_tick: int | UnsetType = UNSET


class Refusals(Struct):
    """Refused and failed payments, by reason, by group of the sender, and by sender.

    A reason is the code of the refusal, or `no_route_at_all` if no clearing can help, or `forwarding_not_allowed` if
    the policies of lines prevent it. Senders without a group count under the empty name.
    """

    reasons: dict[str, int] = {}
    groups: dict[str, int] = {}
    participants: dict[str, int] = {}


class Totals(Struct):
    """One equivalent over the whole run; amounts in atoms."""

    committed: int = 0
    refused: int = 0
    routes: int = 0
    hops: int = 0
    volume: int = 0
    cleared: int = 0
    reduced: int = 0


class Result(Struct, frozen=True):
    """The result of a run: the output of `pendula credit run`."""

    run_id: str
    scenario_id: str
    seed: int
    ticks: int
    state: str
    counters: Counters
    digests: dict[str, str]
    metrics: dict[str, dict[str, str | None]]
    clearing: tuple[ClearingRow, ...]
    diagnostics: tuple[Diagnostic, ...]
    totals: dict[str, dict[str, int | str | None]]
    refusals: Refusals
    queue_depth: int = 0  # payments that the rate limit still delays at the end


def plan_run(
    document: Document,
    *,
    seed: int | None = None,
    intensity: int = 100,
    settings: Settings | None = None,
    run_id: str | None = None,
    lenient: bool = False,
    **options: Any,
) -> RunPlan:
    """Plan a run of this document; raises `DocumentRefused` with every fault.

    The seed comes from the caller, else the scenario, else the settings, else it is 0. Further options are those of
    `Config`: `mode`, `engine`, `behaviour`, `patches`, `digest_ledger`.
    """
    scenario, cautions = read_with_warnings(document, lenient=lenient)
    settings = Settings() if settings is None else settings
    chosen, source = chosen_seed(seed, scenario, settings)
    name = headless_name(digest(document.value), chosen) if run_id is None else run_id
    if isinstance(options.get("behaviour"), str):
        from pendula.credit.outside.behaviours import find_behaviour

        options["behaviour"] = BehaviourName(options["behaviour"], find_behaviour(options["behaviour"]).version)
    config = Config(document.value, chosen, name, intensity, settings, lenient=lenient, **options)
    return RunPlan(config, scenario, cautions, source)


def chosen_seed(given: int | None, scenario: Scenario, settings: Settings) -> tuple[int, str]:
    """The seed of a headless run and its source."""
    if given is not None:
        return given, "request"
    if scenario.seed is not None:
        return scenario.seed, "scenario"
    if settings.fixed_seed is not None:
        return settings.fixed_seed, "SIMULATOR_FIXED_SEED"
    return 0, "default"


class Headless:
    """A run and the summary of its events; `send` delivers commands to it: directly or through a driver."""

    def __init__(
        self, plan: RunPlan, run: Run | None = None, send: "Callable[[Commands], Outcome[Event]] | None" = None
    ) -> None:
        self.plan = plan
        self.run = Run(plan.config, plan.scenario) if run is None else run
        self._send = self.run.apply if send is None else send
        self.clearing: list[ClearingRow] = []
        self.totals = {code: Totals() for code in self.run.network.ledgers}
        self.refusals = Refusals({}, {}, {})
        self.diagnostics: list[Diagnostic] = list(_about(plan))
        self._warned: dict[tuple[str, ...], int] = {}

    def ask(self, outside: Outside) -> None:
        """Set the handler of questions of the run: a payment service, a behaviour, a solver."""
        self.run.outside = outside

    def do(self, command: Commands) -> Outcome[Event]:
        """Apply one command; raises `RunRefused` if it is refused or invalid."""
        outcome = self._send(command if command == PLAIN_TICK else _read(command))
        if outcome.refusal is not None:
            refused = outcome.refusal
            raise RunRefused(sentence_of(refused.code, refused.facts), refusal=msgspec.to_builtins(refused))
        self._gather(outcome.events)
        return outcome

    def step(self, ticks: int, watch: Watch | None = None) -> None:
        """Run up to `ticks` ticks; fewer if a guardrail ends the run."""
        for _ in range(ticks):
            if self.run.state_word != "running":
                return
            outcome = self.do(Tick())
            if watch is not None:
                watch(outcome.events)

    def _gather(self, events: Iterable[Event]) -> None:
        for event in events:
            match event:
                case TxUpdated():
                    self._made(event)
                case TxFailed():
                    self._refused(event)
                    self._note_engine(event.error.details, event.tick_index)
                case ClearingDone():
                    total = self.totals[event.equivalent]
                    total.cleared += atoms_of_sum(event.cleared_amount)
                    total.reduced += atoms_of_sum(event.debt_reduction)
                    amounts = event.cleared_cycles, event.cleared_amount, event.debt_reduction
                    self.clearing.append(
                        ClearingRow(event.tick_index, event.equivalent, event.reason, *amounts, event.optimum)
                    )
                case Note(tick, _, facts):
                    kind = str(facts.get("kind"))
                    if (sentence := note_sentence(kind, tick, facts)) is not None:
                        self._warn(Diagnostic(kind, sentence, facts), tick)
                        self._note_engine(facts, tick)
                case RunStatus(last_error=error) if error is not None:
                    self.diagnostics.append(Diagnostic(error.code, error.message, error.details))
                case _:
                    pass

    def _note_engine(self, details: Mapping[str, Json], tick: int) -> None:
        """Warn of a call of the payment service without a result, once per address and cause."""
        engine = details.get("engine")
        if isinstance(engine, Mapping) and (code := engine["code"]) in ENGINE_CODES:
            self._warn(Diagnostic(str(code), no_result_sentence(engine), dict(engine)), tick)

    def _warn(self, fresh: Diagnostic, tick: int) -> None:
        about = fresh.code, *(str(fresh.facts.get(name)) for name in SUBJECTS)
        place = self._warned.setdefault(about, len(self.diagnostics))
        if place == len(self.diagnostics):
            self.diagnostics.append(fresh)
        else:
            known = self.diagnostics[place]
            count = 1 if known.count is UNSET else known.count
            self.diagnostics[place] = msgspec.structs.replace(known, count=count + 1, last_tick=tick)

    def _made(self, event: TxUpdated) -> None:
        total = self.totals[event.equivalent]
        total.committed += 1
        total.routes += len(event.routes)
        total.hops += sum(len(route.path) - 1 for route in event.routes)
        total.volume += atoms_of_sum(event.amount)

    def _refused(self, event: TxFailed) -> None:
        if event.equivalent in self.totals:
            self.totals[event.equivalent].refused += 1
        people, refusals = self.run.network.people, self.refusals
        node = people.index.get(event.sender)
        group = "" if node is None else people.all[node].group or ""
        reason = _reason(event)
        counts = ((refusals.reasons, reason), (refusals.groups, group), (refusals.participants, event.sender))
        for count, name in counts:
            count[name] = count.get(name, 0) + 1

    def _over_the_run(self, code: str) -> dict[str, int | str | None]:
        total, demand = self.totals[code], self.run.demand[code]
        return {
            "committed": total.committed,
            "refused": total.refused,
            "success_rate": ratio(100 * total.committed, total.committed + total.refused),
            "avg_route_length": ratio(total.hops, total.routes),
            "wanted": text_8(demand.wanted),
            "served": text_8(demand.served),
            "served_share": ratio(100 * demand.served, demand.wanted),
            "volume": text_8(total.volume),
            "cleared_amount": text_8(total.cleared),
            "debt_reduction": text_8(total.reduced),
            "total_debt": text_8(self.run.network.ledgers[code].book.total),
        }

    def result(self) -> Result:
        run = self.run
        return Result(
            run_id=run.config.run_id,
            scenario_id=run.scenario.id,
            seed=run.seed,
            ticks=run.tick,
            state=run.state_word,
            counters=run.counters,
            digests=run.digests(),
            metrics=run.measured,
            clearing=tuple(self.clearing),
            diagnostics=tuple(self.diagnostics),
            totals={code: self._over_the_run(code) for code in self.totals},
            refusals=self.refusals,
            queue_depth=run.queue_depth,
        )


def _reason(event: TxFailed) -> str:
    details = event.error.details
    if "no_route_at_all" in details:
        return "no_route_at_all"
    return "forwarding_not_allowed" if details.get("limited_by") == "policy" else event.error.code


def _read(command: Commands) -> Commands:
    """The command decoded from its bytes, as from a journal, which validates it."""
    try:
        parsed: Commands = _commands(encode(command))
    except (msgspec.DecodeError, InputRefused) as trouble:
        message = f"This is not a command of a run: {trouble}"
        raise RunRefused(message, refusal={"code": "invalid_command", "message": message}) from None
    return parsed


_commands: CommandReader[Commands] = CommandReader(Run)


def _about(plan: RunPlan) -> Iterable[Diagnostic]:
    for caution in plan.cautions:
        yield Diagnostic(caution.code, f"{caution.path}: {caution.message}")
    if plan.seed_from == "default":
        yield Diagnostic("seed_not_given", "No seed was given; the run uses 0.", {"seed": 0})


def simulate(
    document: Document, *, ticks: int, outside: Outside | None = None, watch: Watch | None = None, **options: Any
) -> Result:
    """A whole run in one call; options are those of `plan_run`."""
    headless = Headless(plan_run(document, **options))
    if outside is not None:
        headless.ask(outside)
    headless.step(ticks, watch)
    return headless.result()
