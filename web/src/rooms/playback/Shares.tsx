/** Who gets how much of the screen: each channel's share as it should be and as it is, and new artwork that waits. */

import type { ExposureView, PlayerNow, PooledView } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, integer } from "../../wording";
import { percent } from "./model";
import { Picture } from "./Picture";
import type { OnCommand } from "./sending";
import { useSending } from "./sending";

const MILLION = 1_000_000;

interface SharesProps {
  readonly exposure: readonly ExposureView[];
  /** Whether the buttons can be used: not in the past, and not by those who only look. */
  readonly open: boolean;
  readonly onCommand: OnCommand;
}

export function Shares({ exposure, open, onCommand }: SharesProps) {
  const { error, send } = useSending(onCommand);
  const most = Math.max(1, ...exposure.flatMap(({ target_ppm, actual_ppm }) => [target_ppm, actual_ppm ?? 0]));
  return (
    <section class="panel" aria-labelledby="shares" data-testid="panel-exposure">
      <h2 id="shares">Who gets how much</h2>
      {exposure.length === 0 ? (
        <p class="quiet">This player follows no channel.</p>
      ) : (
        <ul class="shares" data-testid="exposure">
          {exposure.map((one) => (
            <Share key={one.channel} one={one} most={most} open={open} onCommand={send} />
          ))}
        </ul>
      )}
      <p class="quiet">The line is the share a channel should have, the bar what it had in this epoch.</p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </section>
  );
}

interface ShareProps extends Pick<SharesProps, "open" | "onCommand"> {
  readonly one: ExposureView;
  readonly most: number;
}

function Share({ one, most, open, onCommand }: ShareProps) {
  const { channel, target_ppm, actual_ppm, shown, records, banned, readable, paused } = one;
  const part = (ppm: number) => `${(100 * ppm) / most}%`;
  const facts = [
    counted(shown, "turn"),
    counted(records, "record"),
    ...(banned > 0 ? [`${integer(banned)} banned`] : []),
    ...(readable ? [] : ["unreadable"]),
    ...(paused ? ["paused"] : []),
  ];
  return (
    <li class="share" data-channel={channel} data-readable={readable}>
      <span class="share-name">{channel}</span>
      <span class="share-told">
        {actual_ppm === null ? "not yet" : percent(actual_ppm)} <span class="quiet">of {percent(target_ppm)}</span>
      </span>
      <span class="share-bar" aria-hidden="true">
        <span class="share-actual" style={{ width: part(actual_ppm ?? 0) }} />
        <span class="share-target" style={{ left: part(target_ppm) }} />
      </span>
      <span class="share-facts quiet">{facts.join(", ")}</span>
      <button
        type="button"
        class="button button-quiet share-rest"
        disabled={!open}
        aria-pressed={paused}
        aria-label={paused ? `Let ${channel} play again` : `Pause ${channel}`}
        onClick={() => void onCommand({ type: paused ? "resume_channel" : "pause_channel", channel })}
        data-testid={`rest-${channel}`}
      >
        {paused ? "Resume" : "Pause"}
      </button>
    </li>
  );
}

export function Pool({ now: { pool, probability_64 } }: { readonly now: Pick<PlayerNow, "pool" | "probability_64"> }) {
  return (
    <section class="panel" aria-labelledby="pool" data-testid="panel-pool">
      <h2 id="pool">
        New artwork <span class="count">{integer(pool.length)}</span>
      </h2>
      <p class="quiet">
        {pool.length === 0
          ? "None waits. One that is inserted comes up soon, and then less and less."
          : `One of these comes up next with a chance of ${percent((probability_64 * MILLION) / 64)}.`}
      </p>
      {pool.length > 0 && (
        <DataTable
          caption="New artwork that may come up"
          columns={COLUMNS}
          rows={pool}
          rowKey={({ number }) => number}
          empty=""
          testId="pool"
        />
      )}
    </section>
  );
}

const COLUMNS: readonly Column<PooledView>[] = [
  {
    key: "picture",
    title: "picture",
    cell: ({ payload, id }) => (
      <span class="pool-picture">
        <Picture payload={payload} id={id} />
      </span>
    ),
  },
  { key: "id", title: "id", numeric: true, by: ({ id }) => id, cell: ({ id }) => String(id) },
  {
    key: "priority",
    title: "priority",
    wide: true,
    by: ({ priority_64 }) => priority_64,
    cell: ({ priority_64 }) => (
      <span class="priority">
        <meter min={0} max={32} value={priority_64} aria-hidden="true" /> {percent((priority_64 * MILLION) / 64)}
      </span>
    ),
  },
];
