/** One object: its state machine, the reason for its state, its next action, its budget and its audit trail. */

import { api } from "../../api/server";
import type {
  SchedulerEvent,
  SchedulerMachine,
  SchedulerMachines,
  SchedulerShownObject,
  SchedulerWhyObject,
} from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { Budget } from "./Budget";
import { MachineDrawing } from "./MachineDrawing";
import { fromNow, jobHref, localTimes, placeOf, readable, selectionHref } from "./model";
import { ObjectActions } from "./ObjectActions";
import { eventsUntil, placeAfter } from "./PastMoment";
import { usePolled } from "./polling";
import { Trail } from "./Trail";

const MAX_EVENTS = 1000;
const EVENTS_SHOWN = 30;

interface ObjectPanelProps {
  readonly kind: string;
  readonly id: string;
  readonly machines: SchedulerMachines | null;
  readonly now: number;
  /** Show the object after this event; `null` is live. */
  readonly at?: number | null;
}

export function ObjectPanel({ kind, id, machines, now, at = null }: ObjectPanelProps) {
  const polled = usePolled(`${kind}:${id}`, async (signal) => {
    const path = { object_type: kind, object_id: id };
    const [shown, why, trail] = await Promise.all([
      api.get("/scheduler/objects/show/{object_type}/{object_id}", path, {}, signal),
      api.get("/scheduler/objects/why/{object_type}/{object_id}", path, {}, signal),
      api.get("/scheduler/audit", {}, { object_type: kind, object_id: id, limit: MAX_EVENTS }, signal),
    ]);
    return { shown, why, events: trail.events };
  });
  const data = polled.value.value;
  const machine = machines?.machines.find(({ object_type }) => object_type === kind);
  return (
    <section class="panel chosen" aria-labelledby="object" data-testid="panel-object">
      <div class="panel-head">
        <h2 id="object">
          {kind} <span class="mono">{id}</span>
        </h2>
        <a class="button button-quiet" href={selectionHref(null)} data-testid="close">
          Close
        </a>
      </div>
      {polled.error.value !== null && <ErrorNote error={polled.error.value} />}
      {data === null && polled.error.value === null && <p class="quiet">Loading the object …</p>}
      {data !== null && at !== null && (
        <PastObject events={eventsUntil(data.events, at)} id={id} now={now} machine={machine} />
      )}
      {data !== null && at === null && (
        <>
          <p class="why-sentence" data-testid="why-sentence">
            {localTimes(data.why.sentence, now)}
          </p>
          {machine !== undefined && (
            <MachineDrawing machine={machine} current={placeOf(data.shown.object)} visited={visitedIn(data.events)} />
          )}
          <NextAction why={data.why} now={now} />
          <Budget object={data.shown.object} />
          <ObjectFacts why={data.why} />
          <Rollbacks shown={data.shown} now={now} />
          <Decisions shown={data.shown} />
          <ObjectActions key={`${kind}:${id}`} shown={data.shown} why={data.why} onDone={polled.refresh} />
          <h3>History</h3>
          <Trail events={newest(data.events)} now={now} label={`History of ${id}, newest first`} ofObject />
        </>
      )}
    </section>
  );
}

interface PastObjectProps {
  readonly events: readonly SchedulerEvent[];
  readonly id: string;
  readonly now: number;
  readonly machine: SchedulerMachine | undefined;
}

/** The object as of a past moment. */
function PastObject({ events, id, now, machine }: PastObjectProps) {
  const place = placeAfter(events);
  return (
    <>
      <p class="why-sentence" data-testid="why-sentence">
        {place === null ? `${id} did not exist yet.` : `${id} was ${readable(place)}.`}
      </p>
      {machine !== undefined && place !== null && (
        <MachineDrawing machine={machine} current={place} visited={visitedIn(events)} />
      )}
      <h3>History until then</h3>
      <Trail events={newest(events)} now={now} label={`History of ${id} until then, newest first`} ofObject />
    </>
  );
}

function newest(events: readonly SchedulerEvent[]): SchedulerEvent[] {
  return events.slice(-EVENTS_SHOWN).reverse();
}

/** The states of an object according to its audit trail. */
export function visitedIn(events: readonly SchedulerEvent[]): string[] {
  const places = events.flatMap(({ before, after }) =>
    [before, after].flatMap((part) => {
      if (typeof part?.["status"] !== "string") return [];
      const axis = part["epistemic_state"];
      return [typeof axis === "string" ? `${part["status"]}/${axis}` : part["status"]];
    }),
  );
  return [...new Set(places)];
}

function NextAction({ why, now }: { readonly why: SchedulerWhyObject; readonly now: number }) {
  return (
    <div class="ways-out" data-testid="ways-out">
      <h3>Next action</h3>
      <p>
        {why.next_action === null || why.next_action_at === null ? (
          "None."
        ) : (
          <>
            {why.next_job_id === null ? why.next_action : <a href={jobHref(why.next_job_id)}>{why.next_action}</a>}{" "}
            {fromNow(why.next_action_at, now)}
          </>
        )}
        {why.in_the_way !== null && <strong class="blocked-by"> Blocked: {why.in_the_way}.</strong>}
      </p>
      <ul>
        {why.ways_out.map(({ action, finding, leads_to }) => (
          <li key={`${action} ${finding}`}>
            <span class="quiet">
              {action} finds {readable(finding)}
            </span>{" "}
            → {readable(leads_to)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function ObjectFacts({ why }: { readonly why: SchedulerWhyObject }) {
  const { object } = why;
  const facts: readonly (readonly [string, string | null])[] = [
    ["risk", why.risk_tier],
    ["impact", why.impact_tier],
    ["evidence", object.evidence_refs.join(", ") || "none"],
    ["built on", object.source_refs.join(", ") || null],
    ["refuted if", object.falsify_if],
    ["unknown because", object.unknown_type === null ? null : readable(object.unknown_type)],
    ["closed", object.closed],
    ["version", String(object.version)],
  ];
  return (
    <dl class="facts">
      {facts.map(
        ([name, value]) =>
          value !== null && (
            <div class="fact" key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function Rollbacks({ shown, now }: { readonly shown: SchedulerShownObject; readonly now: number }) {
  if (shown.rollbacks.length === 0) return null;
  return (
    <div data-testid="rollbacks">
      <h3>Rollbacks</h3>
      <ul class="job-errors">
        {shown.rollbacks.map(({ rollback_id, asked_at, finished_at, reason }) => (
          <li key={rollback_id}>
            {rollback_id}: requested {fromNow(asked_at, now)} ({reason});{" "}
            {finished_at === null ? <strong>not finished</strong> : `finished ${fromNow(finished_at, now)}`}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Decisions({ shown }: { readonly shown: SchedulerShownObject }) {
  if (shown.decision_traces.length === 0) return null;
  return (
    <details data-testid="decisions">
      <summary>High-risk decisions ({shown.decision_traces.length})</summary>
      <ul class="job-errors">
        {shown.decision_traces.map(({ decision_trace_id, action, outcome, reason, verdicts }) => (
          <li key={decision_trace_id}>
            {action} {outcome}: {reason}{" "}
            <span class="quiet">
              {Object.entries(verdicts)
                .map(([gate, verdict]) => `${readable(gate)} ${verdict}`)
                .join(", ")}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
