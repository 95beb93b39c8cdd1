/** What if: the run as it stands goes on twice, as it is and with another policy, and both are told side by side. */

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
  readonly word: string;
  readonly settings: Readonly<Record<string, string>>;
}

const ADAPTIVE = { clearing_enabled: "on", clearing_policy: "adaptive" };
const CHOICES: readonly Choice[] = [
  { name: "off", word: "debts were never cleared", settings: { clearing_enabled: "off" } },
  {
    name: "often",
    word: "debts were cleared every 5 ticks",
    settings: { clearing_enabled: "on", clearing_policy: "static", clearing_every_n_ticks: "5" },
  },
  { name: "adaptive", word: "debts were cleared when capacity is short", settings: ADAPTIVE },
  { name: "small", word: "no payment were above 50", settings: { amount_cap: "50" } },
];
const TICKS = [30, 60, 120] as const;

export function WhatIf({ runId, equivalent, active }: WhatIfProps) {
  const id = useId();
  const chosen = useSignal("often");
  const ticks = useSignal(60);
  const { busy, error, work } = useWork();
  const answer = useSignal<WhatIfView | null>(null);
  const ask = () =>
    work(async () => {
      const settings = CHOICES.find(({ name }) => name === chosen.value)?.settings ?? {};
      const names = { run_id: runId };
      answer.value = await api.post("/api/v1/simulator/runs/{run_id}/what-if", names, { settings, ticks: ticks.value });
    });
  return (
    <section class="panel" aria-labelledby={`${id}title`} data-testid="panel-what-if">
      <h2 id={`${id}title`}>What if</h2>
      <form
        class="credit-form"
        onSubmit={(event) => {
          event.preventDefault();
          void ask();
        }}
      >
        <label for={`${id}what`}>
          From now on, what if
          <select
            id={`${id}what`}
            value={chosen.value}
            onChange={(event) => (chosen.value = event.currentTarget.value)}
            data-testid="what-if"
          >
            {CHOICES.map(({ name, word }) => (
              <option key={name} value={name}>
                {word}
              </option>
            ))}
          </select>
        </label>
        <label for={`${id}ticks`}>
          for
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
        {answer.value !== null && error.value === null && <Answer found={answer.value} equivalent={equivalent} />}
      </div>
    </section>
  );
}

function Answer({ found, equivalent }: { readonly found: WhatIfView; readonly equivalent: string }) {
  const { original, fork, tick_index, ticks } = found;
  return (
    <div class="what-if-answer" data-testid="what-if-answer">
      <p class="verdict" data-testid="verdict">
        {verdictOf(found)}
      </p>
      <DataTable
        caption={`What comes of ${ticks} ticks from tick ${tick_index} on`}
        columns={[
          { key: "what", title: `${ticks} ticks from ${integer(tick_index)} on`, cell: (row: Row) => row.what },
          { key: "original", title: "as it is", numeric: true, cell: (row: Row) => row.original },
          { key: "fork", title: "what if", numeric: true, cell: (row: Row) => row.fork },
        ]}
        rows={rowsOf(original, fork, equivalent)}
        rowKey={({ what }) => what}
        empty=""
        testId="what-if-table"
      />
      <Curve
        name="payments made, what if"
        note="(dashes: as it is)"
        points={ratesOf(fork, tick_index)}
        other={ratesOf(original, tick_index)}
        writeValue={(value) => `${Math.round(value)} %`}
        writeAt={(at) => `tick ${integer(at)}`}
        max={100}
        empty="Nothing would be tried."
        testId="what-if-curve"
      />
    </div>
  );
}

interface Row {
  readonly what: string;
  readonly original: string;
  readonly fork: string;
}

/** The two ways side by side, in the order in which one asks. */
export function rowsOf(original: WhatIfBranch, fork: WhatIfBranch, equivalent: string): Row[] {
  const row = (what: string, told: (branch: WhatIfBranch) => string): Row => ({
    what,
    original: told(original),
    fork: told(fork),
  });
  return [
    row("payments tried", ({ attempts }) => integer(attempts)),
    row("made", (branch) => `${integer(branch.committed)} (${Math.round(rateOf(branch))} %)`),
    row("refused", ({ rejected }) => integer(rejected)),
    row("clearings", ({ clearings }) => integer(clearings)),
    row("debts cleared", ({ debt_reduction }) => amount(debt_reduction)),
    row("debt at the end", ({ metrics }) => amount(metrics[equivalent]?.["total_debt"] ?? "–")),
  ];
}

/** What differs, in one sentence. */
export function verdictOf({ original, fork, first_difference }: WhatIfView): string {
  if (first_difference === null) return "Nothing would differ.";
  const more = fork.committed - original.committed;
  const part = `The ways part at tick ${integer(first_difference)}`;
  if (more === 0) return `${part}; as many payments would be made.`;
  return `${part}; ${integer(Math.abs(more))} ${more > 0 ? "more" : "fewer"} payments would be made.`;
}

function rateOf({ attempts, committed }: WhatIfBranch): number {
  return attempts === 0 ? 0 : (100 * committed) / attempts;
}

function ratesOf({ tried_by_tick, made_by_tick }: WhatIfBranch, first: number): CurvePoint[] {
  const points = tried_by_tick.map((tried, place) => ({
    at: first + place,
    value: tried === 0 ? null : (100 * (made_by_tick[place] ?? 0)) / tried,
  }));
  return smoothed(points);
}
