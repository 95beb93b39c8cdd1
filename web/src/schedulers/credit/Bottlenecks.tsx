/** The lines that limit payments, worst first; each selects its line in the graph. */

import type { BottleneckView } from "../../api/types";
import type { LineEnds, Network, Selection } from "./network/model";
import { nameOf } from "./network/model";

interface BottlenecksProps {
  readonly bottlenecks: readonly BottleneckView[];
  readonly network: Network;
  readonly chosen: Selection;
  readonly onChoose: (chosen: Selection) => void;
}

export function Bottlenecks({ bottlenecks, network, chosen, onChoose }: BottlenecksProps) {
  return (
    <section class="panel" aria-labelledby="credit-bottlenecks" data-testid="panel-bottlenecks">
      <h2 id="credit-bottlenecks">Bottlenecks</h2>
      {bottlenecks.length === 0 ? (
        <p class="quiet">No bottlenecks so far.</p>
      ) : (
        <ol class="bottlenecks" data-testid="bottlenecks">
          {bottlenecks.map((bottleneck) => {
            const line = lineOf(bottleneck);
            const pressed = chosen?.kind === "line" && chosen.from === line.from && chosen.to === line.to;
            const score = Number(bottleneck.score);
            return (
              <li key={`${line.from} ${line.to}`}>
                <button
                  type="button"
                  class="bottleneck"
                  aria-pressed={pressed}
                  title={bottleneck.suggested_action ?? undefined}
                  onClick={() => onChoose(pressed ? null : { kind: "line", ...line })}
                >
                  <span class="bottleneck-name">
                    {nameOf(network, line.to)} → {nameOf(network, line.from)}
                  </span>
                  <span class="bottleneck-bar" aria-hidden="true">
                    <span style={{ width: `${Math.round(100 * score)}%` }} />
                  </span>
                  <span class="bottleneck-count">{countOf(bottleneck)}</span>
                </button>
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}

/** The count in the server's label, without the names, which are shown above it. */
export function countOf({ label, score }: BottleneckView): string {
  const counts = label?.split(": ").at(-1);
  return counts === undefined || counts === "" ? `${Math.round(100 * Number(score))} % failed` : counts;
}

function lineOf({ target }: BottleneckView): LineEnds {
  return { from: target.from, to: target.to };
}
