/** A reason with its code, sentence and facts, and below it the reasons behind it. */

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

/** A reason folded into one sentence; it expands to the chain with codes and facts. */
export function FoldedReason({ reason }: { readonly reason: Reason }) {
  return (
    <details class="folded-reason" data-testid="folded-reason">
      <summary>
        <span data-testid="folded-sentence">{inOneSentence(reason)}</span>
      </summary>
      <ReasonChain reason={reason} />
    </details>
  );
}

/** The sentences of the first two levels of a reason as one sentence. */
export function inOneSentence({ sentence, because }: Reason): string {
  const parts = because.map((reason) => lowerFirst(withoutStop(reason.sentence)));
  return parts.length === 0 ? sentence : `${withoutStop(sentence)}: ${parts.join("; ")}.`;
}

function withoutStop(sentence: string): string {
  return sentence.replace(/[.!]+$/, "");
}

/** Lower the first letter of an ordinary word; names like `R2` stay unchanged. */
function lowerFirst(sentence: string): string {
  return /^[A-Z][a-z]*\b/.test(sentence) ? sentence.charAt(0).toLowerCase() + sentence.slice(1) : sentence;
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
            {because.map((deeper, index) => (
              <ReasonItem key={index} reason={deeper} level={level + 1} />
            ))}
          </ol>
        </details>
      )}
    </li>
  );
}
