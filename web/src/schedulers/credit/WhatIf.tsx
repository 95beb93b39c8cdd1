/** Forks the run with another policy and compares it with the unchanged run. */

import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";

import { api } from "../../api/server";
import type { WhatIfBranch, WhatIfView } from "../../api/types";
import type { CurvePoint } from "../../charts/Curve";
import { Curve } from "../../charts/Curve";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { integer } from "../../wording";
import { useWork } from "../shared/work";
import { smoothed } from "./Curves";
import { amount } from "./wording";

interface WhatIfProps {
  readonly runId: string;
  readonly equivalent: string;
  readonly active: boolean;
}

interface Choice {
  readonly name: string;
  readonly label: string;
  readonly settings: Readonly<Record<string, string>>;
}

const ADAPTIVE = { clearing_enabled: "on", clearing_policy: "adaptive" };
const CHOICES: readonly Choice[] = [
  { name: "off", label: "never clear debts", settings: { clearing_enabled: "off" } },
  {
    name: "often",
    label: "clear debts every 5 ticks",
    settings: { clearing_enabled: "on", clearing_policy: "static", clearing_every_n_ticks: "5" },
  },
  { name: "adaptive", label: "clear debts when capacity is short", settings: ADAPTIVE },
  { name: "small", label: "limit payments to 50", settings: { amount_cap: "50" } },
];
const TICKS = [30, 60, 120] as const;

export function WhatIf({ runId, equivalent, active }: WhatIfProps) {
  const id = useId();
  const chosen = useSignal("often");
  const ticks = useSignal(60);
  const { busy, error, work } = useWork();
  const result = useSignal<WhatIfView | null>(null);
  const compare = () =>
    work(async () => {
      const settings = CHOICES.find(({ name }) => name === chosen.value)?.settings ?? {};
      const path = { run_id: runId };
      result.value = await api.post("/api/v1/simulator/runs/{run_id}/what-if", path, { settings, ticks: ticks.value });
    });
  return (
    <section class="panel" aria-labelledby={`${id}title`} data-testid="panel-what-if">
      <h2 id={`${id}title`}>What if</h2>
      <form
        class="credit-form"
        onSubmit={(event) => {
          event.preventDefault();
          void compare();
        }}
      >
        <label for={`${id}what`}>
          Change
          <select
            id={`${id}what`}
            value={chosen.value}
            onChange={(event) => (chosen.value = event.currentTarget.value)}
            data-testid="what-if"
          >
            {CHOICES.map(({ name, label }) => (
              <option key={name} value={name}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label for={`${id}ticks`}>
          Duration
          <select
            id={`${id}ticks`}
            value={ticks.value}
            onChange={(event) => (ticks.value = Number(event.currentTarget.value))}
            data-testid="what-if-ticks"
          >
            {TICKS.map((count) => (
              <option key={count} value={count}>
                {count} ticks
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="button" disabled={busy.value || !active} data-testid="compare">
          {busy.value ? "Comparing …" : "Fork and compare"}
        </button>
      </form>
      {error.value !== null && <ErrorNote error={error.value} />}
      <div aria-live="polite">
        {result.value !== null && error.value === null && <Comparison result={result.value} equivalent={equivalent} />}
      </div>
    </section>
  );
}

function Comparison({ result, equivalent }: { readonly result: WhatIfView; readonly equivalent: string }) {
  const { original, fork, tick_index, ticks } = result;
  return (
    <div class="comparison" data-testid="comparison">
      <p class="verdict" data-testid="verdict">
        {verdictOf(result)}
      </p>
      <DataTable
        caption={`Outcome of ${ticks} ticks from tick ${tick_index}`}
        columns={[
          { key: "metric", title: `${ticks} ticks from ${integer(tick_index)}`, cell: (row: Row) => row.metric },
          { key: "original", title: "unchanged", numeric: true, cell: (row: Row) => row.original },
          { key: "fork", title: "changed", numeric: true, cell: (row: Row) => row.fork },
        ]}
        rows={rowsOf(original, fork, equivalent)}
        rowKey={({ metric }) => metric}
        empty=""
        testId="what-if-table"
      />
      <Curve
        name="successful payments, changed"
        note="(dashed: unchanged)"
        points={ratesOf(fork, tick_index)}
        other={ratesOf(original, tick_index)}
        writeValue={(value) => `${Math.round(value)} %`}
        writeAt={(at) => `tick ${integer(at)}`}
        max={100}
        empty="No attempts."
        testId="what-if-curve"
      />
    </div>
  );
}

interface Row {
  readonly metric: string;
  readonly original: string;
  readonly fork: string;
}

/** The two branches side by side. */
export function rowsOf(original: WhatIfBranch, fork: WhatIfBranch, equivalent: string): Row[] {
  const row = (metric: string, format: (branch: WhatIfBranch) => string): Row => ({
    metric,
    original: format(original),
    fork: format(fork),
  });
  return [
    row("payment attempts", ({ attempts }) => integer(attempts)),
    row("committed", (branch) => `${integer(branch.committed)} (${Math.round(rateOf(branch))} %)`),
    row("refused", ({ rejected }) => integer(rejected)),
    row("clearings", ({ clearings }) => integer(clearings)),
    row("debt reduction", ({ debt_reduction }) => amount(debt_reduction)),
    row("debt at the end", ({ metrics }) => amount(metrics[equivalent]?.["total_debt"] ?? "–")),
  ];
}

/** The difference in one sentence. */
export function verdictOf({ original, fork, first_difference }: WhatIfView): string {
  if (first_difference === null) return "No difference.";
  const more = fork.committed - original.committed;
  const start = `The runs diverge at tick ${integer(first_difference)}`;
  if (more === 0) return `${start}; the same number of payments.`;
  return `${start}; ${integer(Math.abs(more))} ${more > 0 ? "more" : "fewer"} payments with the change.`;
}

function rateOf({ attempts, committed }: WhatIfBranch): number {
  return attempts === 0 ? 0 : (100 * committed) / attempts;
}

function ratesOf({ tried_by_tick, made_by_tick }: WhatIfBranch, first: number): CurvePoint[] {
  const points = tried_by_tick.map((attempts, index) => ({
    at: first + index,
    value: attempts === 0 ? null : (100 * (made_by_tick[index] ?? 0)) / attempts,
  }));
  return smoothed(points);
}
