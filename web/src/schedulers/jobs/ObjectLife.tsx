/** One object: its machine with the state it is in lit, why it is there, what comes next, its budget and its trail. */

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
import { besideHref, fromNow, jobHref, placeOf, plain, said } from "./model";
import { ObjectDeeds } from "./ObjectDeeds";
import { placeAfter, until } from "./Past";
import { usePolled } from "./polling";
import { Trail } from "./Trail";

const EVENTS_MOST = 1000;
const EVENTS_SHOWN = 30;

interface ObjectLifeProps {
  readonly kind: string;
  readonly id: string;
  readonly machines: SchedulerMachines | null;
  readonly now: number;
  /** The event after which it is looked at; `null` is now. */
  readonly at?: number | null;
}

export function ObjectLife({ kind, id, machines, now, at = null }: ObjectLifeProps) {
  const found = usePolled(`${kind}:${id}`, async (signal) => {
    const names = { object_type: kind, object_id: id };
    const [shown, why, trail] = await Promise.all([
      api.get("/scheduler/objects/show/{object_type}/{object_id}", names, {}, signal),
      api.get("/scheduler/objects/why/{object_type}/{object_id}", names, {}, signal),
      api.get("/scheduler/audit", {}, { object_type: kind, object_id: id, limit: EVENTS_MOST }, signal),
    ]);
    return { shown, why, events: trail.events };
  });
  const life = found.value.value;
  const machine = machines?.machines.find(({ object_type }) => object_type === kind);
  return (
    <section class="panel chosen" aria-labelledby="object-life" data-testid="panel-object">
      <div class="panel-head">
        <h2 id="object-life">
          {kind} <span class="mono">{id}</span>
        </h2>
        <a class="button button-quiet" href={besideHref(null)} data-testid="close">
          Close
        </a>
      </div>
      {found.error.value !== null && <ErrorNote error={found.error.value} />}
      {life === null && found.error.value === null && <p class="quiet">Loading the object …</p>}
      {life !== null && at !== null && (
        <ObjectThen events={until(life.events, at)} id={id} now={now} machine={machine} />
      )}
      {life !== null && at === null && (
        <>
          <p class="why-sentence" data-testid="why-sentence">
            {plain(life.why.sentence, now)}
          </p>
          {machine !== undefined && (
            <MachineDrawing machine={machine} lit={placeOf(life.shown.object)} visited={visitedIn(life.events)} />
          )}
          <WaysOut why={life.why} now={now} />
          <Budget object={life.shown.object} />
          <Tiers why={life.why} />
          <Rollbacks shown={life.shown} now={now} />
          <Decisions shown={life.shown} />
          <ObjectDeeds key={`${kind}:${id}`} shown={life.shown} why={life.why} onDone={found.refresh} />
          <h3>Its life</h3>
          <Trail events={newest(life.events)} now={now} label={`What happened to ${id}, the newest first`} ofObject />
        </>
      )}
    </section>
  );
}

interface ObjectThenProps {
  readonly events: readonly SchedulerEvent[];
  readonly id: string;
  readonly now: number;
  readonly machine: SchedulerMachine | undefined;
}

/** The object as a moment of the past knew it. */
function ObjectThen({ events, id, now, machine }: ObjectThenProps) {
  const place = placeAfter(events);
  return (
    <>
      <p class="why-sentence" data-testid="why-sentence">
        {place === null ? `${id} was not there yet.` : `${id} was ${said(place)}.`}
      </p>
      {machine !== undefined && place !== null && (
        <MachineDrawing machine={machine} lit={place} visited={visitedIn(events)} />
      )}
      <h3>Its life until then</h3>
      <Trail events={newest(events)} now={now} label={`What happened to ${id} until then, the newest first`} ofObject />
    </>
  );
}

function newest(events: readonly SchedulerEvent[]): SchedulerEvent[] {
  return events.slice(-EVENTS_SHOWN).reverse();
}

/** The states that the trail says it was in. */
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

function WaysOut({ why, now }: { readonly why: SchedulerWhyObject; readonly now: number }) {
  return (
    <div class="ways-out" data-testid="ways-out">
      <h3>What comes next</h3>
      <p>
        {why.next_action === null || why.next_action_at === null ? (
          "Nothing is left to do."
        ) : (
          <>
            {why.next_job_id === null ? why.next_action : <a href={jobHref(why.next_job_id)}>{why.next_action}</a>}{" "}
            {fromNow(why.next_action_at, now)}
          </>
        )}
        {why.in_the_way !== null && <strong class="in-the-way"> In the way: {why.in_the_way}.</strong>}
      </p>
      <ul>
        {why.ways_out.map(({ action, finding, leads_to }) => (
          <li key={`${action} ${finding}`}>
            <span class="quiet">
              {action} finds {said(finding)}
            </span>{" "}
            → {said(leads_to)}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Tiers({ why }: { readonly why: SchedulerWhyObject }) {
  const { object } = why;
  const facts: readonly (readonly [string, string | null])[] = [
    ["risk", why.risk_tier],
    ["impact", why.impact_tier],
    ["evidence", object.evidence_refs.join(", ") || "none"],
    ["built on", object.source_refs.join(", ") || null],
    ["refuted if", object.falsify_if],
    ["unknown because", object.unknown_type === null ? null : said(object.unknown_type)],
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
      <h3>Rollback of what was built on it</h3>
      <ul class="job-errors">
        {shown.rollbacks.map((one) => (
          <li key={one.rollback_id}>
            {one.rollback_id}: asked {fromNow(one.asked_at, now)}, because {one.reason};{" "}
            {one.finished_at === null ? <strong>not finished</strong> : `finished ${fromNow(one.finished_at, now)}`}
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
      <summary>Decisions at high risk ({shown.decision_traces.length})</summary>
      <ul class="job-errors">
        {shown.decision_traces.map((one) => (
          <li key={one.decision_trace_id}>
            {one.action} {one.outcome}: {one.reason}{" "}
            <span class="quiet">
              {Object.entries(one.verdicts)
                .map(([gate, word]) => `${said(gate)} ${word}`)
                .join(", ")}
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}
