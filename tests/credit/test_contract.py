"""The engine contract suite, over a network with every feature."""

from pendula.credit.commands import (
    Clear,
    CloseLine,
    Commands,
    Configure,
    Freeze,
    OpenLine,
    Pause,
    Pay,
    Restart,
    Resume,
    SetIntensity,
    SetLimit,
    Stop,
    Tick,
)
from pendula.credit.engine import Run
from pendula.credit.runs.headless import plan_run
from pendula.credit.settings import Settings, change_settings
from pendula.documents import from_value
from pendula.kernel.canonical import Json
from pendula.testing import engine_contract
from tests.credit.conftest import network

LINES = (
    ("B", "A", "100"),
    ("C", "B", "80.5"),
    ("A", "C", "50.00000001"),
    ("D", "A", "20"),
    ("A", "D", "20"),
    ("C", "D", "0"),
)
MORE: dict[str, Json] = {
    "settings": {"trust_drift": {"enabled": True}, "warmup": {"ticks": 3}, "flow": {"enabled": True}},
    "events": [
        {"time": 1000, "type": "note", "description": "a day begins"},
        {"time": 2000, "type": "stress", "effects": [{"op": "mult", "field": "tx_rate", "value": 2}]},
        {
            "time": 2000,
            "type": "inject",
            "effects": [
                {
                    "op": "add_participant",
                    "participant": {"id": "AA", "type": "hub"},
                    "initial_trustlines": [{"sponsor": "A", "equivalent": "UAH", "limit": 7}],
                },
                {"op": "create_trustline", "from": "C", "to": "A", "equivalent": "uah", "limit": "9.5"},
                {"op": "inject_debt", "from": "D", "to": "A", "equivalent": "UAH", "amount": "1.239"},
                {"op": "inject_debt", "from": "D", "to": "A", "equivalent": "UAH", "amount": "500"},
            ],
        },
        {"time": 4000, "type": "inject", "effects": [{"op": "freeze_participant", "participant_id": "B"}]},
    ],
}
COMMANDS: tuple[Commands, ...] = (
    Tick(),
    Pay("A", "B", "UAH", "5.25", "key:1"),
    Pay("A", "B", "UAH", "5.25", "key:1"),
    Pay("A", "B", "UAH", "5.26", "key:1"),
    Pay("A", "Z", "UAH", "1"),
    Pay("A", "C", "UAH", "1000000"),
    SetIntensity(60),
    Tick(2),
    Clear("UAH", dry_run=True),
    Clear(),
    SetLimit("B", "A", "UAH", "77"),
    SetLimit("B", "A", "UAH", "0"),
    OpenLine("B", "D", "UAH", "3"),
    CloseLine("B", "D", "UAH"),
    OpenLine("B", "D", "UAH", "4"),
    Configure({"clearing_policy": "adaptive", "adaptive_window_ticks": "2"}),
    Configure({"clearing_policy": "sometimes"}),
    Pause(),
    Tick(),
    Resume(),
    Tick(3),
    Freeze("C", lines=False),
    Tick(),
    Stop("tests", "enough"),
    Tick(),
    Restart(),
    Tick(2),
)
QUESTIONS: tuple[Json, ...] = (
    {"from": "A", "to": "C", "equivalent": "UAH", "amount": "1"},
    {"from": "A", "to": "C", "equivalent": "UAH", "amount": "1000000"},
    {"line": {"from": "B", "to": "A", "equivalent": "UAH"}},
    {"clearing": "UAH"},
    {"run": True},
    {"what": "else"},
)


def test_a_run_satisfies_the_engine_contract() -> None:
    settings = change_settings(
        Settings(),
        {"enable_inject": "on", "clearing_every_n_ticks": "2", "amount_cap": "7", "actions_per_tick_max": "6"},
    )
    config = plan_run(from_value(network(*LINES, **MORE)), seed=5, settings=settings).json

    engine_contract(Run, config, COMMANDS, QUESTIONS)
