/** Recent events of a run, newest first: payments, refusals with their cause, clearings. */

import { useSignal } from "@preact/signals";

import { counted, integer } from "../../wording";
import type { Network, RunEvent, Selection } from "./network/model";
import { nameOf } from "./network/model";
import { amount, cause, obstacle } from "./wording";

interface RunEventsProps {
  readonly events: readonly RunEvent[];
  readonly network: Network;
  readonly onChoose: (chosen: Selection) => void;
}

type Kind = RunEvent["kind"] | "all";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["all", "All"],
  ["payment", "Payments"],
  ["refusal", "Refusals"],
  ["clearing", "Clearings"],
];
const MAX_SHOWN = 60;

export function RunEvents({ events, network, onChoose }: RunEventsProps) {
  const kind = useSignal<Kind>("all");
  const rows = events.filter((event) => kind.value === "all" || event.kind === kind.value);
  return (
    <section class="panel" aria-labelledby="credit-events" data-testid="panel-events">
      <div class="panel-head">
        <h2 id="credit-events">Events</h2>
        <div class="segmented" role="group" aria-label="Filter events">
          {KINDS.map(([name, label]) => (
            <button
              key={name}
              type="button"
              aria-pressed={kind.value === name}
              onClick={() => (kind.value = name)}
              data-testid={`events-${name}`}
            >
              {label}
            </button>
          ))}
        </div>
      </div>
      <ol class="run-events" tabIndex={0} aria-label="Events, newest first" data-testid="events">
        {rows
          .slice(-MAX_SHOWN)
          .reverse()
          .map((event) => (
            <li key={event.id} data-kind={event.kind}>
              <span class="event-tick">{integer(event.tick)}</span>
              <span>
                <Sentence event={event} network={network} onChoose={onChoose} />
              </span>
            </li>
          ))}
        {rows.length === 0 && <li class="quiet">No events since this page was opened.</li>}
      </ol>
    </section>
  );
}

interface SentenceProps {
  readonly event: RunEvent;
  readonly network: Network;
  readonly onChoose: (chosen: Selection) => void;
}

function Sentence({ event, network, onChoose }: SentenceProps) {
  if (event.kind === "clearing") {
    const limit = event.optimum === null ? "" : ` of at most ${amount(event.optimum)}`;
    return (
      <>
        <strong>Cleared</strong> {counted(event.cycles, "cycle")}: debt reduced by {amount(event.reduction)}
        {limit}
      </>
    );
  }
  const manual = event.manual ? ", manual" : "";
  const ends = `${nameOf(network, event.from)} → ${nameOf(network, event.to)}`;
  if (event.kind === "payment") {
    const hops = event.hops.length > 1 ? ` over ${counted(event.hops.length, "line")}` : "";
    return (
      <>
        {ends} {amount(event.amount)}
        {hops}
        {manual}
      </>
    );
  }
  const { bottleneck } = event;
  return (
    <>
      {ends} {amount(event.amount)} <em>refused{manual}: </em>
      {bottleneck === null ? (
        cause(event.cause)
      ) : (
        <button
          type="button"
          class="link-button"
          onClick={() => onChoose({ kind: "line", from: bottleneck.from, to: bottleneck.to })}
        >
          {bottleneck.change === ""
            ? `${cause(event.cause)} from ${nameOf(network, bottleneck.to)} to ${nameOf(network, bottleneck.from)}`
            : obstacle(bottleneck.change, nameOf(network, bottleneck.to), nameOf(network, bottleneck.from))}
        </button>
      )}
    </>
  );
}
