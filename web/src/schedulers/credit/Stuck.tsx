/** Where payments get stuck: the worst lines first; each selects its line in the picture. */

import type { BottleneckView } from "../../api/types";
import type { Chosen, LineEnds, Network } from "./network/model";
import { nameOf } from "./network/model";

interface StuckProps {
  readonly bottlenecks: readonly BottleneckView[];
  readonly network: Network;
  readonly chosen: Chosen;
  readonly onChoose: (chosen: Chosen) => void;
}

export function Stuck({ bottlenecks, network, chosen, onChoose }: StuckProps) {
  return (
    <section class="panel" aria-labelledby="credit-stuck" data-testid="panel-stuck">
      <h2 id="credit-stuck">Where payments get stuck</h2>
      {bottlenecks.length === 0 ? (
        <p class="quiet">No payment got stuck at a line so far.</p>
      ) : (
        <ol class="stuck" data-testid="bottlenecks">
          {bottlenecks.map((one) => {
            const line = lineOf(one);
            const pressed = chosen?.kind === "line" && chosen.from === line.from && chosen.to === line.to;
            const score = Number(one.score);
            return (
              <li key={`${line.from} ${line.to}`}>
                <button
                  type="button"
                  class="stuck-line"
                  aria-pressed={pressed}
                  title={one.suggested_action ?? undefined}
                  onClick={() => onChoose(pressed ? null : { kind: "line", ...line })}
                >
                  <span class="stuck-name">
                    {nameOf(network, line.to)} → {nameOf(network, line.from)}
                  </span>
                  <span class="stuck-bar" aria-hidden="true">
                    <span style={{ width: `${Math.round(100 * score)}%` }} />
                  </span>
                  <span class="stuck-told">{toldOf(one)}</span>
                </button>
              </li>
            );
          })}
        </ol>
      )}
    </section>
  );
}

/** What the server counted, without the names that stand above. */
export function toldOf({ label, score }: BottleneckView): string {
  const counts = label?.split(": ").at(-1);
  return counts === undefined || counts === "" ? `${Math.round(100 * Number(score))} % failed` : counts;
}

function lineOf({ target }: BottleneckView): LineEnds {
  return { from: target.from, to: target.to };
}
