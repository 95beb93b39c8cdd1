/** Why: a reason with its code, its sentence and its facts, and below it the reasons it rests on. */

import type { Reason } from "../api/types";
import { Facts } from "./Facts";

const OPEN_LEVELS = 3;

export function ReasonChain({ reason }: { readonly reason: Reason }) {
  return (
    <ol class="reason-chain" data-testid="reason-chain">
      <ReasonItem reason={reason} level={1} />
    </ol>
  );
}

function ReasonItem({ reason, level }: { readonly reason: Reason; readonly level: number }) {
  const { because, facts } = reason;
  return (
    <li class="reason" data-testid="reason" data-code={reason.code}>
      <p class="reason-sentence">
        <code class="code-badge">{reason.code}</code> {reason.sentence}
      </p>
      <Facts facts={facts} />
      {because.length > 0 && (
        <details class="because" open={level < OPEN_LEVELS}>
          <summary>
            because <span class="count">({because.length})</span>
          </summary>
          <ol class="reason-chain">
            {because.map((deeper, place) => (
              <ReasonItem key={place} reason={deeper} level={level + 1} />
            ))}
          </ol>
        </details>
      )}
    </li>
  );
}
