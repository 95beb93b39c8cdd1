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

/** A reason folded into one sentence, with what it rests on; the codes and facts are there on demand. */
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

/** What holds, and because of what: the sentences of the first two levels as one. */
export function inOneSentence({ sentence, because }: Reason): string {
  const grounds = because.map((one) => lowered(bare(one.sentence)));
  return grounds.length === 0 ? sentence : `${bare(sentence)}: ${grounds.join("; ")}.`;
}

function bare(sentence: string): string {
  return sentence.replace(/[.!]+$/, "");
}

/** In small letters where a sentence begins with an ordinary word; names keep theirs. */
function lowered(sentence: string): string {
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
            {because.map((deeper, place) => (
              <ReasonItem key={place} reason={deeper} level={level + 1} />
            ))}
          </ol>
        </details>
      )}
    </li>
  );
}
