/** Viewer controls for one item: show it next, or ban it; and the current bans. */

import type { ItemView, PlayerNow } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { integer } from "../../wording";
import { channelOf, duration, showNext } from "./model";
import type { OnCommand } from "./use_command";
import { useCommand } from "./use_command";

interface ViewerControlsProps {
  readonly item: ItemView | null;
  readonly now: Pick<PlayerNow, "bans" | "clock">;
  /** Whether the buttons are enabled: live, and for operators. */
  readonly open: boolean;
  readonly onCommand: OnCommand;
}

export function ViewerControls({ item, now: { bans, clock }, open, onCommand }: ViewerControlsProps) {
  const { error, send } = useCommand(onCommand);
  const isDisabled = !open || item === null;
  return (
    <section class="panel" aria-labelledby="viewer-controls" data-testid="panel-viewer-controls">
      <h2 id="viewer-controls">Viewer controls</h2>
      <p class="quiet">
        {item === null ? "Select an item." : `Item ${String(item.id)} of ${channelOf(item)}; select another above.`}
      </p>
      <div class="screen-buttons" role="group" aria-label="Viewer controls">
        <button
          type="button"
          class="button"
          disabled={isDisabled}
          onClick={() => item !== null && void send(showNext(item))}
          data-testid="do-pin"
        >
          Show next
        </button>
        <button
          type="button"
          class="button"
          disabled={isDisabled}
          onClick={() => item !== null && void send({ type: "ban_artwork", id: item.id })}
          data-testid="do-ban-artwork"
        >
          Ban everywhere
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
                  aria-label={`Lift the ban of ${String(id)}`}
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
