/** Where payments get stuck: the worst lines first; each selects its line in the picture. */

import type { Bottleneck } from "../../api/types";
import type { Chosen, LineEnds, Network } from "./model";
import { nameOf } from "./model";

interface StuckProps {
  readonly bottlenecks: readonly Bottleneck[];
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
export function toldOf({ label, score }: Bottleneck): string {
  const counts = label?.split(": ").at(-1);
  return counts === undefined || counts === "" ? `${Math.round(100 * Number(score))} % failed` : counts;
}

function lineOf({ target }: Bottleneck): LineEnds {
  return { from: target.from, to: target.to };
}
