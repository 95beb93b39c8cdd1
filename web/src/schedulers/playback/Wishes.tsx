/** What a viewer can wish for about one item: to see it next, or from no channel any more; and what is banned now. */

import type { ItemView, PlayerNow } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { integer } from "../../wording";
import { channelOf, duration, showNext } from "./model";
import type { OnCommand } from "./sending";
import { useSending } from "./sending";

interface WishesProps {
  readonly item: ItemView | null;
  readonly now: Pick<PlayerNow, "bans" | "clock">;
  /** Whether the buttons can be used: not in the past, and not by those who only look. */
  readonly open: boolean;
  readonly onCommand: OnCommand;
}

export function Wishes({ item, now: { bans, clock }, open, onCommand }: WishesProps) {
  const { error, send } = useSending(onCommand);
  const closed = !open || item === null;
  return (
    <section class="panel" aria-labelledby="wishes" data-testid="panel-wishes">
      <h2 id="wishes">Wishes</h2>
      <p class="quiet">
        {item === null ? "Choose an item." : `About ${String(item.id)} of ${channelOf(item)}; choose another above.`}
      </p>
      <div class="screen-buttons" role="group" aria-label="Wishes">
        <button
          type="button"
          class="button"
          disabled={closed}
          onClick={() => item !== null && void send(showNext(item))}
          data-testid="do-pin"
        >
          Show next
        </button>
        <button
          type="button"
          class="button"
          disabled={closed}
          onClick={() => item !== null && void send({ type: "ban_artwork", id: item.id })}
          data-testid="do-ban-artwork"
        >
          Never, from any channel
        </button>
      </div>
      {error.value !== null && <ErrorNote error={error.value} />}
      {bans.length > 0 && (
        <>
          <h3>
            Banned artworks <span class="count">{integer(bans.length)}</span>
          </h3>
          <ul class="bans" data-testid="bans">
            {bans.map(({ id, until }) => (
              <li key={String(id)}>
                {String(id)} <span class="quiet">{leftOf(until, clock)}</span>
                <button
                  type="button"
                  class="button button-quiet"
                  disabled={!open}
                  aria-label={`Let ${String(id)} come again`}
                  onClick={() => void send({ type: "lift", id })}
                  data-testid={`lift-${String(id)}`}
                >
                  Lift
                </button>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function leftOf(until: number | null, clock: number): string {
  return until === null ? "" : `for ${duration(Math.max(0, until - clock))}`;
}
