/** Shares of the screen: actual and target share of each channel, and the pool of new artwork. */

import type { ExposureView, PlayerNow, PooledView } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { ErrorNote } from "../../components/ErrorNote";
import { counted, integer } from "../../wording";
import { percent } from "./model";
import { Picture } from "./Picture";
import type { OnCommand } from "./use_command";
import { useCommand } from "./use_command";

const MILLION = 1_000_000;

interface SharesProps {
  readonly exposure: readonly ExposureView[];
  /** The turns of new artwork in this epoch. */
  readonly newShown: number;
  /** Whether the buttons are enabled: live, and for operators. */
  readonly open: boolean;
  readonly onCommand: OnCommand;
}

export function Shares({ exposure, newShown, open, onCommand }: SharesProps) {
  const { error, send } = useCommand(onCommand);
  const turns = exposure.reduce((sum, { shown }) => sum + shown, 0);
  const whole = turns + newShown;
  return (
    <section class="panel" aria-labelledby="shares" data-testid="panel-exposure">
      <h2 id="shares">Shares</h2>
      {exposure.length === 0 && newShown === 0 ? (
        <p class="quiet">This player follows no channel.</p>
      ) : (
        <ul class="shares" data-testid="exposure">
          {exposure.map((channel) => (
            <ChannelShare
              key={channel.channel}
              exposure={channel}
              turns={turns}
              whole={whole}
              open={open}
              onCommand={send}
            />
          ))}
          {newShown > 0 && <NewShare shown={newShown} whole={whole} />}
        </ul>
      )}
      <p class="quiet">
        The bars add up to the screen time of this epoch. The line marks the target of a channel, less the time of new
        artwork.
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </section>
  );
}

interface ChannelShareProps extends Pick<SharesProps, "open" | "onCommand"> {
  readonly exposure: ExposureView;
  /** The turns of all channels, and with those of new artwork. */
  readonly turns: number;
  readonly whole: number;
}

function ChannelShare({ exposure, turns, whole, open, onCommand }: ChannelShareProps) {
  const { channel, target_ppm, actual_ppm, shown, records, banned, readable, paused } = exposure;
  const channelPart = whole === 0 ? 1 : turns / whole;
  const facts = [
    counted(shown, "turn"),
    ...(actual_ppm === null ? [] : [`${percent(actual_ppm)} of channel turns`]),
    `target ${percent(target_ppm)}`,
    counted(records, "record"),
    ...(banned > 0 ? [`${integer(banned)} banned`] : []),
    ...(readable ? [] : ["unreadable"]),
    ...(paused ? ["paused"] : []),
  ];
  return (
    <li class="share" data-channel={channel} data-readable={readable}>
      <span class="share-name">{channel}</span>
      <span class="share-percent">{whole === 0 ? "none yet" : percent((MILLION * shown) / whole)}</span>
      <span class="share-bar" aria-hidden="true">
        <span class="share-actual" style={{ width: part(shown, whole) }} />
        <span class="share-target" style={{ left: `${rounded((target_ppm / 10_000) * channelPart)}%` }} />
      </span>
      <span class="share-facts quiet">{facts.join(", ")}</span>
      <button
        type="button"
        class="button button-quiet share-pause"
        disabled={!open}
        aria-pressed={paused}
        aria-label={paused ? `Resume ${channel}` : `Pause ${channel}`}
        onClick={() => void onCommand({ type: paused ? "resume_channel" : "pause_channel", channel })}
        data-testid={`channel-${channel}`}
      >
        {paused ? "Resume" : "Pause"}
      </button>
    </li>
  );
}

/** The share of new artwork, which has no target: it is drawn at random, ever less often. */
function NewShare({ shown, whole }: { readonly shown: number; readonly whole: number }) {
  return (
    <li class="share" data-testid="share-new">
      <span class="share-name">new artwork</span>
      <span class="share-percent">{percent((MILLION * shown) / whole)}</span>
      <span class="share-bar" aria-hidden="true">
        <span class="share-actual share-new" style={{ width: part(shown, whole) }} />
      </span>
      <span class="share-facts quiet">{counted(shown, "turn")}</span>
    </li>
  );
}

function part(shown: number, whole: number): string {
  return `${whole === 0 ? 0 : rounded((100 * shown) / whole)}%`;
}

function rounded(percentage: number): number {
  return Math.round(percentage * 100) / 100;
}

export function Pool({ now: { pool, probability_64 } }: { readonly now: Pick<PlayerNow, "pool" | "probability_64"> }) {
  return (
    <section class="panel" aria-labelledby="pool" data-testid="panel-pool">
      <h2 id="pool">
        New artwork <span class="count">{integer(pool.length)}</span>
      </h2>
      <p class="quiet">
        {pool.length === 0
          ? "None. Inserted artwork is shown soon, then ever less often."
          : `Chance that one of these is shown next: ${percent((probability_64 * MILLION) / 64)}.`}
      </p>
      {pool.length > 0 && (
        <DataTable
          caption="Pool of new artwork"
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
