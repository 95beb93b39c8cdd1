/** Events of the trail, one after another: who did what and why, what it was before and after, and on which evidence. */

import type { Json, JsonObject } from "../../api/json";
import { inOneLine } from "../../api/json";
import type { SchedulerEvent } from "../../api/types";
import { clockTime } from "../../wording";
import { jobHref, plain, said } from "./model";

interface TrailProps {
  readonly events: readonly SchedulerEvent[];
  readonly now: number;
  readonly label: string;
  /** Whether events name the job they belong to. */
  readonly ofObject?: boolean;
}

export function Trail({ events, now, label, ofObject = false }: TrailProps) {
  return (
    <ol class="trail" aria-label={label} data-testid="trail">
      {events.map((event) => (
        <li key={event.id} class="trail-event" data-type={event.event_type} data-testid="trail-event">
          <p class="trail-head">
            <time dateTime={event.timestamp}>{clockTime(Date.parse(event.timestamp))}</time>
            <span class="trail-type">{said(event.event_type)}</span>
            <span class="quiet">
              {event.actor.type} {event.actor.id}
            </span>
            {ofObject && event.job_id !== null && <a href={jobHref(event.job_id)}>{event.job_id}</a>}
          </p>
          <p>{event.reason}</p>
          <Changes before={event.before} after={event.after} now={now} />
          <p class="trail-evidence">
            <span class="quiet">evidence</span> {event.evidence_refs.join(", ")}
          </p>
        </li>
      ))}
    </ol>
  );
}

interface Change {
  readonly name: string;
  readonly before: Json;
  readonly after: Json;
}

const NOTHING = new Set(["null", "0", "false", "none"]);

/** The members that differ, in the order of what is after; of what is new, those that say something. */
export function changesOf(before: JsonObject | null, after: JsonObject): Change[] {
  return Object.entries(after)
    .map(([name, value]) => ({ name, before: before?.[name] ?? null, after: value }))
    .filter((change) => {
      const [old, fresh] = [inOneLine(change.before), inOneLine(change.after)];
      return old !== fresh && !(change.before === null && NOTHING.has(fresh));
    });
}

interface ChangesProps {
  readonly before: JsonObject | null;
  readonly after: JsonObject;
  readonly now: number;
}

function Changes({ before, after, now }: ChangesProps) {
  const changes = changesOf(before, after);
  if (changes.length === 0) return null;
  return (
    <dl class="changes">
      {changes.map((change) => (
        <div key={change.name} class="change">
          <dt>{said(change.name)}</dt>
          <dd>
            {change.before !== null && (
              <>
                <span class="change-before">{plain(inOneLine(change.before), now)}</span>{" "}
                <span aria-hidden="true">→</span> <span class="visually-hidden">becomes </span>
              </>
            )}
            <span>{plain(inOneLine(change.after), now)}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
