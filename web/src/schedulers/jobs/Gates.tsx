/** Gates: what each says, for everything or for one object, and the form that gives one another word. */

import { useSignal } from "@preact/signals";

import type { ApiError } from "../../api/client";
import { asApiError } from "../../api/client";
import { api, canCommand } from "../../api/server";
import type { SchedulerGate, SchedulerMachines } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { actingAs, NameField } from "./acting";
import { fromNow, said } from "./model";
import { usePolled } from "./polling";

const EVERYTHING = "*";
const SHOWN_MOST = 200;

interface GatesProps {
  readonly machines: SchedulerMachines;
  readonly now: number;
}

export function Gates({ machines, now }: GatesProps) {
  const found = usePolled("gates", (signal) => api.get("/scheduler/gates", {}, { limit: SHOWN_MOST }, signal));
  const gates = found.value.value?.gates ?? null;
  const unset = machines.gates.filter(
    ({ gate, required }) => required && gates?.every((one) => one.gate !== gate || one.scope !== EVERYTHING),
  );
  return (
    <section class="panel" aria-labelledby="gates" data-testid="panel-gates">
      <h2 id="gates">Gates</h2>
      <p class="quiet">
        Nothing of high risk is promoted past a gate that does not pass. The strictest word wins; a gate that nobody has
        set lets nothing through.
      </p>
      {found.error.value !== null && <ErrorNote error={found.error.value} />}
      {gates !== null && unset.length > 0 && (
        <p class="note" data-testid="gates-unset">
          Never set for everything: {unset.map(({ gate }) => said(gate)).join(", ")}.
        </p>
      )}
      <DataTable
        caption="Gates as they are now"
        columns={columns(now)}
        rows={gates ?? []}
        rowKey={(gate) => `${gate.gate} ${gate.scope}`}
        empty={gates === null ? "Loading gates …" : "No gate was ever set."}
        testId="gates-table"
      />
      {found.value.value?.next_after != null && (
        <p class="quiet">The first {SHOWN_MOST} are shown, those for everything before those for one object.</p>
      )}
      <SetGate machines={machines} onSet={found.refresh} />
    </section>
  );
}

function columns(now: number): Column<SchedulerGate>[] {
  return [
    {
      key: "gate",
      title: "Gate",
      cell: ({ gate }) => <span class="nowrap">{said(gate)}</span>,
      by: ({ gate }) => gate,
    },
    {
      key: "verdict",
      title: "Says",
      cell: ({ verdict }) => (
        <span class="gate-word" data-verdict={verdict}>
          {verdict}
        </span>
      ),
      by: ({ verdict }) => verdict,
    },
    { key: "scope", title: "For", cell: ({ scope }) => (scope === EVERYTHING ? "everything" : scope) },
    { key: "reason", title: "Because", cell: ({ reason }) => reason, wide: true },
    {
      key: "by",
      title: "By",
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
  const told = useSignal("");
  const error = useSignal<ApiError | null>(null);
  const words = machines.gates.find((one) => one.gate === gate.value)?.verdicts ?? [];
  const word = verdict.value !== null && words.includes(verdict.value) ? verdict.value : (words[0] ?? "");
  const set = async (event: Event) => {
    event.preventDefault();
    const wish = {
      gate: gate.value,
      verdict: word,
      reason: reason.value.trim(),
      scope: scope.value.trim() || EVERYTHING,
    };
    try {
      const answer = await api.setGate(wish, actingAs());
      error.value = null;
      told.value = `${said(answer.gate.gate)} says ${answer.gate.verdict} from now on (version ${answer.gate.version}).`;
      onSet();
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  return (
    <form class="gate-form" onSubmit={(event) => void set(event)} aria-label="Set a gate" data-testid="gate-form">
      <label>
        gate
        <select
          value={gate.value}
          onChange={({ currentTarget }) => {
            gate.value = currentTarget.value;
          }}
          data-testid="gate-name"
        >
          {machines.gates.map((one) => (
            <option key={one.gate} value={one.gate}>
              {said(one.gate)}
            </option>
          ))}
        </select>
      </label>
      <label>
        says
        <select
          value={word}
          onChange={({ currentTarget }) => {
            verdict.value = currentTarget.value;
          }}
          data-testid="gate-verdict"
        >
          {words.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <label>
        for
        <input
          value={scope.value}
          placeholder="everything, or memory:id"
          onInput={({ currentTarget }) => {
            scope.value = currentTarget.value;
          }}
        />
      </label>
      <label class="gate-reason">
        because
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
        Set the gate
      </button>
      {!canCommand.value && <p class="quiet">Your role may look; this needs the role operator.</p>}
      <p class="quiet" role="status" data-testid="gate-told">
        {told}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </form>
  );
}
