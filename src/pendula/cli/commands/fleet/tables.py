"""Results of the commands as tables: maps with findings and certificate, runs, reasons, replays, incidents."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from re import compile as regex
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from pendula.cli.output import facts, table
from pendula.kernel.wording import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pendula.fleet.contracts import LockResult, LockSnapshot, RobotState, TickSnapshot

MOST_A_CODE = 12
MOST_PLACES = 12
MOST_ROWS = 40
STYLES = {"ERROR": "bold red", "WARN": "yellow", "INFO": "dim"}
_NOUNS = {"ERROR": "error", "WARN": "warning", "INFO": "note"}


def compiled(form: Mapping[str, Any]) -> "RenderableType":
    pairs = [
        ("map", form["mapId"]),
        ("written", f"{form['file']}, {form['bytes']} bytes"),
        ("holds", _sizes(form["sizes"])),
        ("conflicts reach", form["conflictGranularity"]),
        ("compiled", form["compiledMapHash"]),
        ("source", form["mapHash"]),
        ("trucks", form["robotProfileHash"]),
        ("findings", _severities(form["severities"])),
    ]
    parts: list[RenderableType] = [facts(pairs)]
    if form["certificate"] is not None:
        parts.append(_certificate(form["certificate"]))
    if form.get("findings"):
        parts.append(findings(form["findings"]))
    return Group(*parts)


def checked(form: Mapping[str, Any], sizes: Mapping[str, int] | None, *, asked: bool) -> "RenderableType":
    """The findings, the certificate or why there is none, and a summary line."""
    parts: list[RenderableType] = []
    if form["findings"]:
        parts.append(findings(form["findings"]))
    parts += [Text(f"doubt: {doubt}") for doubt in form["doubts"]]
    if form["certificate"] is not None:
        parts.append(_certificate(form["certificate"]))
    elif asked:
        parts.append(Text("No certificate: fix the errors first."))
    verdict = "cannot be used" if not form["sound"] else "is sound"
    counts = "" if sizes is None else f" {_sizes(sizes)};"
    parts.append(Text(f"{form['file']} {verdict}:{counts} {_severities(form['severities'])}."))
    return Group(*parts)


def findings(forms: Sequence[Mapping[str, Any]]) -> "RenderableType":
    """Findings by severity and code, the rarest code first. Equal findings at several places share a row. A frequent
    code shows only some of its findings and the number of the others."""
    rows: list[Sequence[str | Text]] = []
    hidden = 0
    for (_, code), group in groupby(forms, key=lambda one: (one["severity"], one["code"])):
        alike = _by_text(list(group))
        shown = alike if len(alike) <= MOST_A_CODE else alike[: MOST_A_CODE - 1]
        for one, places in shown:
            severity = Text(one["severity"], style=STYLES[one["severity"]])
            more = len(places) - MOST_PLACES
            hidden += max(more, 0)
            where = "; ".join(places[:MOST_PLACES]) + (f" and {more} more" if more > 0 else "")
            rows.append((severity, one["code"], where, one["message"], one["remedy"]))
        if len(shown) < len(alike):
            left = sum(len(places) for _, places in alike[len(shown) :])
            hidden += left
            rows.append(("", code, f"and {left} more", "", ""))
    drawn = table(("severity", "code", "where", "what", "what to do"), rows)
    return Group(drawn, Text("--json lists all")) if hidden else drawn


def _by_text(forms: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Findings with equal texts, the first of each with all their places."""
    alike: dict[tuple[str, str], tuple[Mapping[str, Any], list[str]]] = {}
    for one in forms:
        alike.setdefault((one["message"], one["remedy"]), (one, []))[1].append(one["place"])
    return list(alike.values())


def ran(form: Mapping[str, Any]) -> "RenderableType":
    """The result of a run: tasks, waits, invariants, and missed expectations."""
    metrics, tasks = form["metrics"], form["tasks"]
    stood = ", ".join(f"{code} {ms / 1000:.1f} s" for code, ms in metrics["waitMsByReason"].items())
    least = metrics["minEnvelopeDistanceMm"]
    pairs = [
        ("scenario", f"{form['scenario']}, seed {form['seed']}, {form['simulatedMs'] / 1000:.0f} s"),
        ("tasks", f"{tasks['done']} done, {tasks['open']} open; {metrics['tasksPerHour']} an hour"),
        ("longest wait", f"{metrics['longestWaitMs'] / 1000:.1f} s"),
        ("stood", stood or "no truck waited or was stopped"),
        ("nearest envelopes", "no two trucks came near each other" if least is None else f"{least / 1000} m apart"),
        ("alerts", ", ".join(metrics["alerts"]) or "none"),
        ("invariants", ", ".join(f"{name} {one['violations']}" for name, one in form["invariants"].items())),
        ("digest", form["digest"]),
    ]
    parts: list[RenderableType] = [facts(pairs)]
    lines = [*_stretches(form["violations"]), *_not_kept(form)]
    lines += [f"{one['atMs']} ms, {one['incidentId']}: {one['message']}" for one in form["incidents"]]
    parts += [Text(line) for line in lines[:MOST_ROWS]]
    parts += [
        Text(f"{one['atMs']} ms, {one['type']} ({one['actionId']}) was rejected: {one['message']} ({one['code']})")
        for one in form.get("refusedActions", ())[:MOST_ROWS]
    ]
    parts += [Text(f"not as expected: {sentence}", style="bold red") for sentence in form["unmet"]]
    if not form["unmet"]:
        parts.append(Text("All expectations were met.", style="bold green"))
    return Group(*parts)


def reason(form: Mapping[str, Any]) -> "RenderableType":
    """Why a truck stands, or a task waits."""
    if "taskId" in form:
        at = f"{form['taskId']} at {form['atMs'] / 1000:.1f} s"
        return facts([("task", f"{at}, {form['state']}"), ("in words", form["sentence"]), *_because(form)])
    if form["reasonCode"] is None:
        return Text(f"{form['robotId']} does not wait. {form['sentence']}")
    blockers = [one for one in (form["blockerRobotId"], form["blockerResourceId"]) if one]
    pairs = [
        ("truck", f"{form['robotId']} at {form['atMs'] / 1000:.1f} s"),
        ("reason", f"{form['reasonCode']} ({form['holdReason']}), for {form['waitMs'] / 1000:.1f} s"),
        ("in the way", ", ".join(blockers) or "none"),
        ("chain", " waits for ".join(form["chain"])),
        ("in words", form["sentence"]),
        *_because(form),
    ]
    if form["cycle"]:
        pairs.append(("it would close", " -> ".join([*form["cycle"], form["cycle"][0]])))
    return facts(pairs)


def _because(form: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The sentences of the other trucks in the chain, to the root."""
    return [("" if number else "because", one["sentence"]) for number, one in enumerate(form.get("because", ()))]


def replayed(form: Mapping[str, Any]) -> "RenderableType":
    pairs = [
        ("ticks", f"{form['firstTick']} to {form['lastTick']}, {form['ticks']} in all"),
        ("trucks", ", ".join(form["robots"])),
        ("incidents", ", ".join(one["incidentId"] for one in form["incidents"]) or "none"),
    ]
    if form["tail"]:
        pairs.append(("tail", form["tail"]))
    if form["missing"]:
        pairs.append(("missing", form["missing"]))
    first = form["firstDifference"]
    if first is None:
        return Group(facts(pairs), Text("Every tick matches its record.", style="bold green"))
    pairs += [("tick", str(first["tick"])), ("truck", first["robotId"] or "-"), ("field", first["field"])]
    pairs += [("recorded", str(first["recorded"])), ("computed", str(first["computed"]))]
    return Group(facts(pairs), Text("DIFFERENT", style="bold red"))


def versus(form: Mapping[str, Any]) -> "RenderableType":
    """Two sets of parameters side by side."""
    first = form["first"]
    head = [
        ("ticks", f"{form['ticks']}, {form['ticksThatDiffer']} of them differ"),
        ("changed", ", ".join(f"{name} {a} to {b}" for name, (a, b) in form["changed"].items()) or "nothing"),
        ("first difference", "none" if first is None else _first(first)),
    ]
    rows = [(name, str(form["a"][name]), str(form["b"][name])) for name in _FIGURES]
    codes = sorted({*form["a"]["waitMsByReason"], *form["b"]["waitMsByReason"]})
    for code in codes:
        a, b = (form[side]["waitMsByReason"].get(code, 0) for side in "ab")
        rows.append((f"stood, {code}", f"{a} ms", f"{b} ms"))
    rows += [(f"differ in {name}", "", str(count)) for name, count in form["differences"].items()]
    parts = [facts(head), table(("", "a, as recorded", "b"), rows)]
    return Group(*parts) if first is None else Group(*parts, Text(_SAME_REPORTS))


def incidents(form: Mapping[str, Any]) -> "RenderableType":
    """Incidents of a journal, and the bundles written for them."""
    if not form["incidents"]:
        return Text("There were no incidents.")
    rows = [
        (one["incidentId"], f"{one['atMs'] / 1000:.1f} s", one["code"], ", ".join(one["robotIds"]), one["message"])
        for one in form["incidents"]
    ]
    made = [Text(f"bundle {one}") for one in form["bundles"]]
    return Group(table(("incident", "at", "code", "trucks", ""), rows), *made)


# Their messages end with how far, behind a comma; those of others may have commas anywhere.
_MEASURED = ("I-2", "I-7")


def _stretches(violations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Consecutive violations of a rule by the same trucks as one line, with their number and end."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in violations:
        invariant, message = one["invariant"], one["message"]
        what = message.rpartition(", ")[0] if invariant in _MEASURED else message
        found.setdefault((invariant, what), []).append(one)
    for same in found.values():
        first, more = same[0], len(same) - 1
        again = f"; {more} more of these up to {same[-1]['atMs']} ms" if more else ""
        yield f"{first['atMs']} ms, {first['invariant']}: {first['message']}{again}"


def _not_kept(form: Mapping[str, Any]) -> Iterator[str]:
    """The numbers of violations, if the result lists only the first of them."""
    broken = {name: one["violations"] for name, one in form["invariants"].items() if one["violations"]}
    total, kept = sum(broken.values()), len(form["violations"])
    if total > kept:
        each = ", ".join(f"{name} {count}" for name, count in broken.items())
        yield f"These are the first {kept} of {total} violations: {each}"


_FIGURES = ("grants", "stops", "refusedRoutes", "alerts", "tasksDone")


_SAME_REPORTS = (
    "The trucks followed the commands of a, and b got the same reports: its figures show what it would have decided in "
    "each tick, not where that would have led. To compare that, run a scenario with both."
)


def _first(one: Mapping[str, Any]) -> str:
    a, b = (_decided(one["field"], one[side]) for side in "ab")
    return f"tick {one['tick']}, {one['robotId']}, {one['field']}: {a} in a, {b} in b"


def _decided(field: str, value: Any) -> str:
    match field, value:
        case _, None:
            return "none"
        case "grant", {"routeId": route, "endUm": end}:
            return f"{route} up to {end / 1e6:g} m"
        case "holdPoint", int():
            return f"{value / 1e6:g} m"
    return str(value)


def _certificate(form: Mapping[str, Any]) -> "RenderableType":
    trucks = counted(len(form["trucks"]), "truck")
    if form["live"]:
        return Text(f"LIVE: {trucks} and {counted(form['legs'], 'way')} meet W1 to W3.", style="bold green")
    why = form["counterexample"]
    return Group(
        Text(f"NOT LIVE, {why['condition']}: {why['message']}.", style="bold red"), Text(f"Remedy: {why['remedy']}.")
    )


def _sizes(sizes: Mapping[str, int]) -> str:
    nouns = {
        "nodes": "node",
        "edges": "edge",
        "edgeGroups": "lane",
        "cells": "cell",
        "corridors": "corridor",
        "criticalSections": "section",
        "conflicts": "conflict",
    }
    return ", ".join(counted(sizes[name], noun) for name, noun in nouns.items())


def state(snapshot: "TickSnapshot") -> "RenderableType":
    """Trucks with their grants, lanes that are held or waited for, and locked nodes."""
    results = {result.robotId: result for result in snapshot.lockResults}
    trucks = [_truck(robot, results[robot.robotId]) for robot in snapshot.robots]
    missing = [name for name in results if name not in {robot.robotId for robot in snapshot.robots}]
    parts: list[RenderableType] = [
        facts([("tick", str(snapshot.tick)), ("time", f"{snapshot.nowMs / 1000:.1f} s")]),
        table(("truck", "status", "task", "at", "speed", "hold", "blocked by", "may drive to"), trucks),
    ]
    if missing:
        parts.append(Text(f"Never reported: {', '.join(missing)}"))
    parts.append(table(("lane", "direction", "held by", "queue"), list(_lanes(snapshot.locks))))
    parts.append(table(("node", "locked by", "radius"), [_node(lock) for lock in snapshot.locks.nodeLocks]))
    return Group(*parts)


def _truck(robot: "RobotState", result: "LockResult") -> tuple[str, ...]:
    from pendula.fleet.contracts import TaskView

    task = robot.task if isinstance(robot.task, TaskView) else None
    blocker, hold = result.blocker, result.holdPoint
    return (
        robot.robotId,
        robot.status.value,
        "" if task is None else f"{task.phase.value} {task.taskId or ''}".strip(),
        f"{robot.pose.x:f}, {robot.pose.y:f} m, {robot.pose.yaw:f} rad",
        f"{robot.v:f} m/s",
        result.holdReason.value,
        "" if blocker is None else f"{blocker.blockerRobotId} at {blocker.blockerResourceId}",
        "" if hold is None else f"{hold.sM:f} m of {hold.edgeKey}",
    )


def _lanes(locks: "LockSnapshot") -> Iterator[tuple[str, ...]]:
    for group in locks.edgeGroups:
        holders = [f"{one.robotId} at {one.sM:f} m, {one.reservedAheadM:f} m ahead" for one in group.occupants]
        queue = ", ".join(one.robotId for one in group.queue)
        yield group.edgeGroupKey, group.direction, "; ".join(holders), queue


def _node(lock: Any) -> tuple[str, ...]:
    return lock.nodeId, lock.robotId, f"{lock.radiusM:f} m"


def _severities(severities: Mapping[str, int]) -> str:
    texts = [counted(count, _NOUNS[name]) for name, count in severities.items() if count]
    return ", ".join(texts) or "no findings"


def tuned(form: Mapping[str, Any]) -> "RenderableType":
    """A row for every combination, the best one marked, and recommendations."""
    best = form["best"]
    rows = [
        (
            "best" if row == best else "" if row["acceptable"] else "no",
            str(row["trucks"]),
            str(row["oneWayMilli"]),
            ", ".join(f"{name}={value}" for name, value in row["params"].items()),
            str(row["tasksPerHour"]) if row["refused"] is None else _refused_for(row["refused"]),
            f"{row['longestWaitMs'] // 1000} s",
        )
        for row in form["rows"]
    ]
    heads = ("", "trucks", "one-way", "parameters", "tasks an hour", "longest wait")
    parts: list[RenderableType] = [table(heads, rows)]
    parts += [Text(f"- {sentence}") for sentence in form["sentences"]]
    if form["directions"]:
        parts.append(Text(f"- the best one prefers these directions: {', '.join(form['directions'])}"))
    if best is not None and not form["oneWayMatters"] and any(row["oneWayMilli"] for row in form["rows"]):
        parts.append(Text("- no lane has a choice of directions for these streams: --one-way 0 is enough"))
    if best is None:
        parts.append(Text(f"No combination was acceptable: {_instead(form['rows'])}."))
    return Group(*parts)


_NOT_LIVE = "MAP_NOT_LIVE"
_CODE = regex(r"[A-Z]+(?:_[A-Z]+)+")


def _refused_for(sentence: str) -> str:
    """A short reason why a combination cannot run."""
    code = _CODE.search(sentence)
    return "not LIVE" if code is None or code[0] == _NOT_LIVE else code[0]


def _instead(rows: Sequence[Mapping[str, Any]]) -> str:
    """What to try, by why the rows are not acceptable."""
    refused = {_refused_for(row["refused"]) for row in rows if row["refused"] is not None}
    ways = []
    if any(row["refused"] is None and not row["violations"] for row in rows):
        ways.append("allow a longer wait")
    if any(row["refused"] is None for row in rows) or "not LIVE" in refused:
        ways.append("try fewer trucks")
    if refused - {"not LIVE"}:
        ways.append(f"fix the combinations that cannot run ({', '.join(sorted(refused - {'not LIVE'}))})")
    return ", or ".join(ways)
