/** A past moment of the audit trail: its event, and the due jobs and object states after it. */

import type { SchedulerEvent, SchedulerPast } from "../../api/types";
import { Readout, Readouts } from "../../components/Readout";
import { clockTime, integer } from "../../wording";
import { DueLine } from "./DueLine";
import { eventNumber, readable } from "./model";
import { Trail } from "./Trail";

export function PastMoment({ moment }: { readonly moment: SchedulerPast }) {
  const { event, jobs, waiting, places, now } = moment;
  if (event === null || now === null) return <p class="quiet">No events before this moment.</p>;
  const then = Date.parse(now);
  return (
    <div class="past-moment" data-testid="past-moment">
      <Readouts>
        <Readout name="time" value={clockTime(then)} />
        <Readout name="waiting" value={integer(jobs.queued)} />
        <Readout name="running" value={integer(jobs.running)} />
        <Readout name="succeeded" value={integer(jobs.succeeded)} />
        <Readout name="failed" value={integer(jobs.failed)} />
        <Readout name="dead letters" value={integer(jobs.dead_letter)} alarm={jobs.dead_letter > 0} />
      </Readouts>
      <section class="panel" aria-labelledby="past-event">
        <h2 id="past-event">Event</h2>
        <p>
          {readable(event.object_type)} <span class="mono">{event.object_id}</span>
        </p>
        <Trail events={[event]} now={then} label="Event" ofObject />
      </section>
      <DueLine jobs={waiting} waiting={jobs.queued} now={then} />
      {places.length > 0 && <Places places={places} />}
    </div>
  );
}

function Places({ places }: Pick<SchedulerPast, "places">) {
  const kinds = [...new Set(places.map(({ object_type }) => object_type))];
  return (
    <section class="panel" aria-labelledby="past-places" data-testid="past-places">
      <h2 id="past-places">Objects by state</h2>
      {kinds.map((kind) => (
        <p key={kind} class="place-chips">
          <strong>{kind}</strong>
          {places
            .filter(({ object_type }) => object_type === kind)
            .map(({ place, objects }) => (
              <span key={place} class="place-chip">
                {readable(place)} <strong>{integer(objects)}</strong>
              </span>
            ))}
        </p>
      ))}
    </section>
  );
}

/** The events up to event `at`; all events for `null`. */
export function eventsUntil(events: readonly SchedulerEvent[], at: number | null): SchedulerEvent[] {
  return events.filter(({ id }) => at === null || eventNumber(id) <= at);
}

/** The state of an object after these events; `null` when none is a transition. */
export function placeAfter(events: readonly SchedulerEvent[]): string | null {
  const last = events.findLast(({ event_type, after }) => event_type === "state_transition" && "status" in after);
  if (last === undefined) return null;
  const { status, epistemic_state } = last.after as { status?: unknown; epistemic_state?: unknown };
  return typeof epistemic_state === "string" ? `${String(status)}/${epistemic_state}` : String(status);
}

/** The state of a job after these events; `null` when none has one. */
export function stateAfter(events: readonly SchedulerEvent[]): string | null {
  const last = events.findLast(({ event_type, after }) => event_type === "scheduler_job" && "status" in after);
  return last === undefined ? null : String(last.after["status"]);
}
