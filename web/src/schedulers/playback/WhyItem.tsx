/** Why an item was chosen: the selection step with weights, credits, draws and the pool at that moment. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import { api } from "../../api/server";
import type { ItemView, ItemWhy } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { FoldedReason } from "../../components/ReasonChain";
import { integer } from "../../wording";
import { channelOf, keyOf } from "./model";

interface WhyItemProps {
  readonly item: ItemView | null;
  readonly address: EngineAddress;
  /** The epoch at that moment. */
  readonly epoch: number | bigint;
  /** The record shown; `null` is live. */
  readonly at: number | null;
  /** Whether the item was selected; otherwise it is the current one. */
  readonly chosen: boolean;
  readonly onBack: () => void;
}

export function WhyItem({ item, address, epoch, at, chosen, onBack }: WhyItemProps) {
  const response = useSignal<ItemWhy | null>(null);
  const error = useSignal<ApiError | null>(null);
  const key = item === null ? null : keyOf(item);
  // Ordinals restart with each epoch, so the same ordinal may be another item.
  const isOldEpoch = item !== null && String(item.epoch_id) !== String(epoch);
  useEffect(() => {
    if (item === null || isOldEpoch) return;
    const abort = new AbortController();
    const path = { player: address.engine, ordinal: item.ordinal };
    api.get("/api/v1/playback/{player}/items/{ordinal}", path, { at }, abort.signal).then(
      (answer) => {
        if (abort.signal.aborted) return;
        response.value = answer;
        error.value = null;
      },
      (thrown: unknown) => {
        if (!abort.signal.aborted) error.value = asApiError(thrown);
      },
    );
    return () => abort.abort();
  }, [key, at, isOldEpoch]);
  const answer = response.value;
  const same = answer?.item !== null && answer?.item !== undefined && keyOf(answer.item) === key;
  return (
    <section class="panel" aria-labelledby="why-item" data-testid="panel-why-item">
      <div class="why-head">
        <h2 id="why-item">Why {titleOf(item)}</h2>
        {chosen && (
          <button type="button" class="button button-quiet" onClick={onBack} data-testid="why-now">
            Back to the current item
          </button>
        )}
      </div>
      {error.value !== null && <ErrorNote error={error.value} />}
      {item === null && <p class="quiet">Nothing is showing. Select an item.</p>}
      {isOldEpoch && <p class="quiet">The weights of that epoch are no longer stored.</p>}
      {item !== null && !isOldEpoch && answer !== null && (same || answer.item === null) && (
        <FoldedReason reason={answer.why} />
      )}
    </section>
  );
}

function titleOf(item: ItemView | null): string {
  if (item === null) return "this item";
  return item.ordinal === 0 ? "this pinned item" : `item ${integer(item.ordinal)} of ${channelOf(item)}`;
}
