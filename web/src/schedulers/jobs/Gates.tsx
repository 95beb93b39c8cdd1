/** Gates with their verdicts, globally or for one object, and the form to set one. */

import { useSignal } from "@preact/signals";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import { api, canCommand } from "../../api/server";
import type { SchedulerGate, SchedulerMachines } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { actingUser, NameField } from "./acting_user";
import { fromNow, readable } from "./model";
import { usePolled } from "./polling";

const ALL_OBJECTS = "*";
const MAX_SHOWN = 200;

interface GatesProps {
  readonly machines: SchedulerMachines;
  readonly now: number;
}

export function Gates({ machines, now }: GatesProps) {
  const polled = usePolled("gates", (signal) => api.get("/scheduler/gates", {}, { limit: MAX_SHOWN }, signal));
  const gates = polled.value.value?.gates ?? null;
  const unset = machines.gates.filter(
    ({ gate, required }) => required && gates?.every((row) => row.gate !== gate || row.scope !== ALL_OBJECTS),
  );
  return (
    <section class="panel" aria-labelledby="gates" data-testid="panel-gates">
      <h2 id="gates">Gates</h2>
      <p class="quiet">
        High-risk objects are promoted only if every gate passes. The strictest verdict applies; a gate that is not set
        blocks.
      </p>
      {polled.error.value !== null && <ErrorNote error={polled.error.value} />}
      {gates !== null && unset.length > 0 && (
        <p class="note" data-testid="gates-unset">
          Not set for all objects: {unset.map(({ gate }) => readable(gate)).join(", ")}.
        </p>
      )}
      <DataTable
        caption="Gates"
        columns={columns(now)}
        rows={gates ?? []}
        rowKey={(gate) => `${gate.gate} ${gate.scope}`}
        empty={gates === null ? "Loading gates …" : "No gates set."}
        testId="gates-table"
      />
      {polled.value.value?.next_after != null && (
        <p class="quiet">Showing the first {MAX_SHOWN}; gates for all objects come first.</p>
      )}
      <SetGate machines={machines} onSet={polled.refresh} />
    </section>
  );
}

function columns(now: number): Column<SchedulerGate>[] {
  return [
    {
      key: "gate",
      title: "Gate",
      cell: ({ gate }) => <span class="nowrap">{readable(gate)}</span>,
      by: ({ gate }) => gate,
    },
    {
      key: "verdict",
      title: "Verdict",
      cell: ({ verdict }) => (
        <span class="gate-verdict" data-verdict={verdict}>
          {verdict}
        </span>
      ),
      by: ({ verdict }) => verdict,
    },
    { key: "scope", title: "Scope", cell: ({ scope }) => (scope === ALL_OBJECTS ? "all objects" : scope) },
    { key: "reason", title: "Reason", cell: ({ reason }) => reason, wide: true },
    {
      key: "by",
      title: "Set by",
      cell: ({ set_by, set_at }) => <span class="nowrap">{`${set_by}, ${fromNow(set_at, now)}`}</span>,
    },
  ];
}

interface SetGateProps {
  readonly machines: SchedulerMachines;
  readonly onSet: () => void;
}

function SetGate({ machines, onSet }: SetGateProps) {
  const gate = useSignal(machines.gates[0]?.gate ?? "");
  const verdict = useSignal<string | null>(null);
  const scope = useSignal("");
  const reason = useSignal("");
  const status = useSignal("");
  const error = useSignal<ApiError | null>(null);
  const verdicts = machines.gates.find((candidate) => candidate.gate === gate.value)?.verdicts ?? [];
  const chosen = verdict.value !== null && verdicts.includes(verdict.value) ? verdict.value : (verdicts[0] ?? "");
  const send = async (event: Event) => {
    event.preventDefault();
    const body = {
      gate: gate.value,
      verdict: chosen,
      reason: reason.value.trim(),
      scope: scope.value.trim() || ALL_OBJECTS,
    };
    try {
      const answer = await api.setGate(body, actingUser());
      error.value = null;
      status.value = `Set ${readable(answer.gate.gate)} to ${answer.gate.verdict} (version ${answer.gate.version}).`;
      onSet();
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  return (
    <form class="gate-form" onSubmit={(event) => void send(event)} aria-label="Set a gate" data-testid="gate-form">
      <label>
        gate
        <select
          value={gate.value}
          onChange={({ currentTarget }) => {
            gate.value = currentTarget.value;
          }}
          data-testid="gate-name"
        >
          {machines.gates.map(({ gate: name }) => (
            <option key={name} value={name}>
              {readable(name)}
            </option>
          ))}
        </select>
      </label>
      <label>
        verdict
        <select
          value={chosen}
          onChange={({ currentTarget }) => {
            verdict.value = currentTarget.value;
          }}
          data-testid="gate-verdict"
        >
          {verdicts.map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label>
        scope
        <input
          value={scope.value}
          placeholder="all objects, or memory:id"
          onInput={({ currentTarget }) => {
            scope.value = currentTarget.value;
          }}
        />
      </label>
      <label class="gate-reason">
        reason
        <input
          value={reason.value}
          required
          maxLength={1000}
          onInput={({ currentTarget }) => {
            reason.value = currentTarget.value;
          }}
          data-testid="gate-reason"
        />
      </label>
      <NameField />
      <button type="submit" class="button button-main" disabled={!canCommand.value} data-testid="set-gate">
        Set gate
      </button>
      {!canCommand.value && <p class="quiet">Read-only: needs the operator role.</p>}
      <p class="quiet" role="status" data-testid="gate-status">
        {status}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </form>
  );
}
