/** What has just happened, newest first: payments, refusals with their cause, clearings. */

import { useSignal } from "@preact/signals";

import { counted, integer } from "../../wording";
import type { Chosen, Happening, Network } from "./network/model";
import { nameOf } from "./network/model";
import { amount, cause, standsInTheWay } from "./wording";

interface HappenedProps {
  readonly happened: readonly Happening[];
  readonly network: Network;
  readonly onChoose: (chosen: Chosen) => void;
}

type Kind = Happening["kind"] | "all";

const KINDS: readonly (readonly [Kind, string])[] = [
  ["all", "All"],
  ["payment", "Payments"],
  ["refusal", "Refusals"],
  ["clearing", "Clearings"],
];
const SHOWN_MOST = 60;

export function Happened({ happened, network, onChoose }: HappenedProps) {
  const kind = useSignal<Kind>("all");
  const rows = happened.filter((one) => kind.value === "all" || one.kind === kind.value);
  return (
    <section class="panel" aria-labelledby="credit-happened" data-testid="panel-happened">
      <div class="panel-head">
        <h2 id="credit-happened">What happens</h2>
        <div class="segmented" role="group" aria-label="What is listed">
          {KINDS.map(([name, word]) => (
            <button
              key={name}
              type="button"
              aria-pressed={kind.value === name}
              onClick={() => (kind.value = name)}
              data-testid={`happened-${name}`}
            >
              {word}
            </button>
          ))}
        </div>
      </div>
      <ol class="happened" tabIndex={0} aria-label="What happened, newest first" data-testid="happened">
        {rows
          .slice(-SHOWN_MOST)
          .reverse()
          .map((one) => (
            <li key={one.id} data-kind={one.kind}>
              <span class="happened-tick">{integer(one.tick)}</span>
              <span>
                <Sentence happening={one} network={network} onChoose={onChoose} />
              </span>
            </li>
          ))}
        {rows.length === 0 && <li class="quiet">Nothing since this page was opened.</li>}
      </ol>
    </section>
  );
}

interface SentenceProps {
  readonly happening: Happening;
  readonly network: Network;
  readonly onChoose: (chosen: Chosen) => void;
}

function Sentence({ happening: one, network, onChoose }: SentenceProps) {
  if (one.kind === "clearing") {
    const best = one.optimum === null ? "" : ` of at most ${amount(one.optimum)}`;
    return (
      <>
        <strong>Cleared</strong> {counted(one.cycles, "circle")}: debts less by {amount(one.reduction)}
        {best}
      </>
    );
  }
  const hand = one.byHand ? ", by hand" : "";
  const ends = `${nameOf(network, one.from)} → ${nameOf(network, one.to)}`;
  if (one.kind === "payment") {
    const hops = one.hops.length > 1 ? ` over ${counted(one.hops.length, "line")}` : "";
    return (
      <>
        {ends} {amount(one.amount)}
        {hops}
        {hand}
      </>
    );
  }
  const { bottleneck } = one;
  return (
    <>
      {ends} {amount(one.amount)} <em>refused{hand}: </em>
      {bottleneck === null ? (
        cause(one.cause)
      ) : (
        <button
          type="button"
          class="link-button"
          onClick={() => onChoose({ kind: "line", from: bottleneck.from, to: bottleneck.to })}
        >
          {bottleneck.change === ""
            ? `${cause(one.cause)} from ${nameOf(network, bottleneck.to)} to ${nameOf(network, bottleneck.from)}`
            : standsInTheWay(bottleneck.change, nameOf(network, bottleneck.to), nameOf(network, bottleneck.from))}
        </button>
      )}
    </>
  );
}
