/** The page that suits every engine: what is happening now, what came, why, and any moment of the journal. */

import type { EngineSummary, StateView } from "../../api/client";
import { api } from "../../api/server";
import { ErrorNote } from "../../components/ErrorNote";
import { JsonTree } from "../../components/JsonTree";
import { TimeSlider } from "../../components/TimeSlider";
import type { RoomPageProps } from "../../registry";
import { replaceAddress, roomHref } from "../../route";
import { integer } from "../../wording";
import { Ask } from "../shared/Ask";
import { Came } from "../shared/Came";
import { useLiveEngine, useMoment } from "../shared/following";
import { JournalAround } from "../shared/JournalAround";

export function GenericRoom({ room, engine, at }: RoomPageProps) {
  const live = useLiveEngine(room.name, engine);
  const past = useMoment(at, (n, signal) => api.state(live.address, n, signal));
  const now = live.state.value;
  const shown = at === null ? now : past.value.value;
  const error = at === null ? live.error.value : past.error.value;
  const moveTo = (n: number | null) => replaceAddress(roomHref(room.name, engine, n));
  const summary = room.engines.find((candidate) => candidate.name === engine);

  return (
    <div class="room" data-testid="room" data-live={at === null}>
      {now !== null && (
        <TimeSlider
          first={live.extent.value.first}
          last={now.n}
          at={at}
          snapshots={live.extent.value.snapshots}
          onMove={moveTo}
        />
      )}
      {at !== null && <PastBanner at={at} onLive={() => moveTo(null)} />}
      {error !== null && <ErrorNote error={error} />}
      {shown !== null && <Readouts view={shown} summary={summary} />}
      <div class="room-columns">
        <section class="panel" aria-labelledby="now" aria-busy={past.busy.value} data-testid="panel-now">
          <h2 id="now">{at === null ? "What is happening" : "What was"}</h2>
          {shown !== null ? (
            <JsonTree value={shown.state} name="state" />
          ) : (
            error === null && <p class="quiet">Fetching the state …</p>
          )}
        </section>
        {at === null ? (
          <Came live={live} onLook={moveTo} />
        ) : (
          <JournalAround address={live.address} at={at} onLook={moveTo} />
        )}
      </div>
      <Ask live={live} past={at !== null} />
    </div>
  );
}

export function PastBanner({ at, onLive }: { readonly at: number; readonly onLive: () => void }) {
  return (
    <div class="past-banner" role="status" data-testid="past-banner">
      <p>
        You are looking at the past: the state after record <strong>{integer(at)}</strong>.
      </p>
      <button type="button" class="button button-main" onClick={onLive} data-testid="back-to-live">
        Back to live
      </button>
    </div>
  );
}

interface ReadoutsProps {
  readonly view: StateView;
  readonly summary: EngineSummary | undefined;
}

function Readouts({ view, summary }: ReadoutsProps) {
  const unit = summary?.time_unit ?? "";
  const broken = view.broken.length > 0 ? view.broken.join(", ") : (summary?.broken ?? null);
  return (
    <dl class="readouts" data-testid="readouts">
      <Readout name="time" value={integer(view.t)} unit={unit} />
      <Readout name="record" value={integer(view.n)} />
      <Readout
        name="next due"
        value={view.next_due === null ? "nothing" : integer(view.next_due)}
        unit={view.next_due === null ? "" : unit}
      />
      <Readout name="invariants" value={broken === null ? "all hold" : broken} alarm={broken !== null} />
    </dl>
  );
}

export interface ReadoutProps {
  readonly name: string;
  readonly value: string;
  readonly unit?: string;
  readonly alarm?: boolean;
}

export function Readout({ name, value, unit = "", alarm = false }: ReadoutProps) {
  return (
    <div class="readout" data-alarm={alarm} data-testid={`readout-${name.replace(" ", "-")}`}>
      <dt>{name}</dt>
      <dd>
        {alarm && <span aria-hidden="true">▲ </span>}
        {value} {unit !== "" && <span class="unit">{unit}</span>}
      </dd>
    </div>
  );
}
