/** Events of the audit trail with actor, reason, changes and evidence. */

import type { Json, JsonObject } from "../../api/json";
import { inOneLine } from "../../api/json";
import type { SchedulerEvent } from "../../api/types";
import { clockTime } from "../../wording";
import { jobHref, localTimes, readable } from "./model";

interface TrailProps {
  readonly events: readonly SchedulerEvent[];
  readonly now: number;
  readonly label: string;
  /** Whether events link to their job. */
  readonly ofObject?: boolean;
}

export function Trail({ events, now, label, ofObject = false }: TrailProps) {
  return (
    <ol class="trail" aria-label={label} data-testid="trail">
      {events.map((event) => (
        <li key={event.id} class="trail-event" data-type={event.event_type} data-testid="trail-event">
          <p class="trail-head">
            <time dateTime={event.timestamp}>{clockTime(Date.parse(event.timestamp))}</time>
            <span class="trail-type">{readable(event.event_type)}</span>
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

const EMPTY_VALUES = new Set(["null", "0", "false", "none"]);

/** The members that changed, in the order of `after`; empty values of new members are left out. */
export function changesOf(before: JsonObject | null, after: JsonObject): Change[] {
  return Object.entries(after)
    .map(([name, value]) => ({ name, before: before?.[name] ?? null, after: value }))
    .filter((change) => {
      const [oldText, newText] = [inOneLine(change.before), inOneLine(change.after)];
      return oldText !== newText && !(change.before === null && EMPTY_VALUES.has(newText));
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
          <dt>{readable(change.name)}</dt>
          <dd>
            {change.before !== null && (
              <>
                <span class="change-before">{localTimes(inOneLine(change.before), now)}</span>{" "}
                <span aria-hidden="true">→</span> <span class="visually-hidden">becomes </span>
              </>
            )}
            <span>{localTimes(inOneLine(change.after), now)}</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}
