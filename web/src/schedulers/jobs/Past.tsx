/** A moment of the trail: the event it is about, and what was due and where objects were after it. */

import type { SchedulerEvent, SchedulerPast } from "../../api/types";
import { Readout, Readouts } from "../../components/Readout";
import { clockTime, integer } from "../../wording";
import { DueLine } from "./DueLine";
import { eventNumber, said } from "./model";
import { Trail } from "./Trail";

export function PastMoment({ moment }: { readonly moment: SchedulerPast }) {
  const { event, jobs, waiting, places, now } = moment;
  if (event === null || now === null) return <p class="quiet">Nothing had happened yet.</p>;
  const then = Date.parse(now);
  return (
    <div class="past-moment" data-testid="past-moment">
      <Readouts>
        <Readout name="then" value={clockTime(then)} />
        <Readout name="waiting" value={integer(jobs.queued)} />
        <Readout name="running" value={integer(jobs.running)} />
        <Readout name="succeeded" value={integer(jobs.succeeded)} />
        <Readout name="failed" value={integer(jobs.failed)} />
        <Readout name="dead letters" value={integer(jobs.dead_letter)} alarm={jobs.dead_letter > 0} />
      </Readouts>
      <section class="panel" aria-labelledby="past-event">
        <h2 id="past-event">What had just happened</h2>
        <p>
          {said(event.object_type)} <span class="mono">{event.object_id}</span>
        </p>
        <Trail events={[event]} now={then} label="What had just happened" ofObject />
      </section>
      <DueLine jobs={waiting} waiting={jobs.queued} now={then} title="What was due" />
      {places.length > 0 && <Places places={places} />}
    </div>
  );
}

function Places({ places }: Pick<SchedulerPast, "places">) {
  const kinds = [...new Set(places.map(({ object_type }) => object_type))];
  return (
    <section class="panel" aria-labelledby="past-places" data-testid="past-places">
      <h2 id="past-places">Where objects were</h2>
      {kinds.map((kind) => (
        <p key={kind} class="place-chips">
          <strong>{kind}</strong>
          {places
            .filter(({ object_type }) => object_type === kind)
            .map(({ place, objects }) => (
              <span key={place} class="place-chip">
                {said(place)} <strong>{integer(objects)}</strong>
              </span>
            ))}
        </p>
      ))}
    </section>
  );
}

/** The events up to a moment; all of them where there is none. */
export function until(events: readonly SchedulerEvent[], at: number | null): SchedulerEvent[] {
  return events.filter(({ id }) => at === null || eventNumber(id) <= at);
}

/** Where these events leave an object; nothing where none tells. */
export function placeAfter(events: readonly SchedulerEvent[]): string | null {
  const last = events.findLast(({ event_type, after }) => event_type === "state_transition" && "status" in after);
  if (last === undefined) return null;
  const { status, epistemic_state } = last.after as { status?: unknown; epistemic_state?: unknown };
  return typeof epistemic_state === "string" ? `${String(status)}/${epistemic_state}` : String(status);
}

/** In which state these events leave a job; nothing where none tells. */
export function stateAfter(events: readonly SchedulerEvent[]): string | null {
  const last = events.findLast(({ event_type, after }) => event_type === "scheduler_job" && "status" in after);
  return last === undefined ? null : String(last.after["status"]);
}
