/** Waiting actions, each with its reason, which expands to the chain of reasons. */

import { useSignal } from "@preact/signals";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import { api } from "../../api/server";
import type { ActionView, Reason, WorldNow } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { ReasonChain } from "../../components/ReasonChain";
import { integer } from "../../wording";
import type { Clock } from "./model";
import { paramsOf, span, withoutActorLocks, words } from "./model";

interface WaitingProps {
  readonly now: WorldNow;
  readonly clock: Clock;
  readonly address: EngineAddress;
  readonly live: boolean;
  readonly chosen: string | null;
  readonly onChoose: (action: string) => void;
}

const STAGES = { waiting: "waits", held: "held", suspended: "suspended", running: "runs" } as const;

export function Waiting(props: WaitingProps) {
  const { now, chosen } = props;
  const rows = now.actions.filter(({ stage }) => stage !== "running");
  const count = ["waiting", "held", "suspended"].reduce((sum, stage) => sum + (now.counts[stage] ?? 0), 0);
  return (
    <section class="panel" aria-labelledby="waiting" data-testid="panel-waiting">
      <h2 id="waiting">
        Waiting, and why <span class="count">{integer(count)}</span>
      </h2>
      {rows.length === 0 ? (
        <p class="quiet">Nothing is waiting.</p>
      ) : (
        <DataTable
          caption="Waiting actions"
          columns={columns(props)}
          rows={rows}
          rowKey={({ id }) => id}
          current={({ id }) => id === chosen}
          empty=""
          testId="waiting"
        />
      )}
    </section>
  );
}

function columns({ now, clock, address, live, onChoose }: WaitingProps): Column<ActionView>[] {
  return [
    {
      key: "action",
      title: "action",
      by: ({ id }) => id,
      cell: ({ id, actor, verb, params }) => (
        <>
          <button type="button" class="link-button" title="Show on the timeline" onClick={() => onChoose(id)}>
            {id}
          </button>
          <span class="below">
            {actor}, {words(verb)}
          </span>
          {paramsOf(params) !== "" && (
            <span class="below params" data-testid="params">
              {paramsOf(params)}
            </span>
          )}
        </>
      ),
    },
    {
      key: "since",
      title: "since",
      by: ({ since, until }) => since ?? until,
      cell: (action) => (
        <>
          <code class="code-badge" data-stage={action.stage}>
            {STAGES[action.stage]}
          </code>
          <span class="below">{timesOf(action, now, clock)}</span>
        </>
      ),
    },
    {
      key: "why",
      title: "why",
      wide: true,
      cell: ({ id, why }) =>
        why === null ? (
          // Keyed by moment, since the reason depends on it.
          <AskWhy key={live ? "live" : now.n} action={id} address={address} at={live ? null : now.n} />
        ) : (
          <Why reason={why} />
        ),
    },
  ];
}

function timesOf({ since, until, remaining }: ActionView, now: WorldNow, clock: Clock): string {
  if (since !== null) return `${clock.time(since)}, ${span(now.t - since)}`;
  return until !== null ? `until ${clock.time(until)}` : `${span(remaining)} left`;
}

function Why({ reason }: { readonly reason: Reason }) {
  const shown = withoutActorLocks(reason);
  return (
    <details class="why" data-testid="why">
      <summary>{shown.sentence}</summary>
      <ReasonChain reason={shown} />
    </details>
  );
}

/** Beyond the first waiting actions, reasons are fetched on demand. */
interface AskWhyProps {
  readonly action: string;
  readonly address: EngineAddress;
  /** The record shown; `null` is live. */
  readonly at: number | null;
}

function AskWhy({ action, address, at }: AskWhyProps) {
  const reason = useSignal<Reason | null>(null);
  const error = useSignal<ApiError | null>(null);
  const ask = async () => {
    try {
      reason.value = await api.why(address, { action }, at);
    } catch (thrown) {
      error.value = asApiError(thrown);
    }
  };
  if (error.value !== null) return <ErrorNote error={error.value} />;
  if (reason.value !== null) return <Why reason={reason.value} />;
  return (
    <button type="button" class="button button-quiet" onClick={() => void ask()}>
      Ask why
    </button>
  );
}
