/** What a person does to an object: say what was found, attach evidence, amend, refill, report a rollback done. */

import { useSignal } from "@preact/signals";

import { api } from "../../api/server";
import type { SchedulerShownObject, SchedulerWhyObject } from "../../api/types";
import { counted } from "../../wording";
import { Deed } from "./Deed";
import { placeOf, said } from "./model";

const UNKNOWNS = ["multipath", "out_of_scope", "ontic_unknowable"];
const BUDGET_MOST = 1000;

interface DeedsProps {
  readonly shown: SchedulerShownObject;
  readonly why: SchedulerWhyObject;
  readonly onDone: () => void;
}

export function ObjectDeeds(props: DeedsProps) {
  const waits = props.shown.rollbacks.some(({ finished_at }) => finished_at === null);
  return (
    <div class="deeds" role="group" aria-label="What you can do" data-testid="deeds">
      <h3>What you can do</h3>
      {props.why.ways_out.length > 0 && <Decide {...props} />}
      <Attach {...props} />
      {props.why.next_action !== null && <Amend {...props} />}
      <Refill {...props} />
      {waits && <RolledBack {...props} />}
    </div>
  );
}

function Decide({ shown: { object }, why, onDone }: DeedsProps) {
  const way = useSignal(0);
  const refs = useSignal("");
  const chosen = why.ways_out[way.value] ?? why.ways_out[0];
  if (chosen === undefined) return null;
  const { action, finding, leads_to } = chosen;
  const decide = async (reason: string, user: string | null) => {
    const body = { action, finding, reason, evidence_refs: refsIn(refs.value), version: object.version };
    const answer = await api.post("/scheduler/objects/decide/{object_type}/{object_id}", namesOf(object), body, user);
    refs.value = "";
    const became = `${object.object_id} is ${said(placeOf(answer.object))}.`;
    return answer.outcome === "transitioned" ? became : `Nothing changed: ${answer.reason}. ${became}`;
  };
  return (
    <Deed
      title="Decide"
      testId="deed-decide"
      question={`${object.object_id} is ${said(placeOf(object))} and is to become ${said(leads_to)}, in your name?`}
      act={decide}
      onDone={onDone}
    >
      <label>
        what was found
        <select
          value={String(way.value)}
          onChange={({ currentTarget }) => {
            way.value = Number(currentTarget.value);
          }}
          data-testid="deed-decide-way"
        >
          {why.ways_out.map((one, number) => (
            <option key={`${one.action} ${one.finding}`} value={String(number)}>
              {`${one.action}: ${said(one.finding)} → ${said(one.leads_to)}`}
            </option>
          ))}
        </select>
      </label>
      <Refs value={refs.value} needed={false} onType={(text) => (refs.value = text)} testId="deed-decide-refs" />
    </Deed>
  );
}

function Attach({ shown: { object }, onDone }: DeedsProps) {
  const refs = useSignal("");
  const unknown = useSignal("");
  const attach = async (reason: string, user: string | null) => {
    const body = {
      evidence_refs: refsIn(refs.value),
      reason,
      ...(unknown.value === "" ? {} : { unknown_type: unknown.value }),
    };
    await api.post("/scheduler/objects/evidence/{object_type}/{object_id}", namesOf(object), body, user);
    refs.value = "";
    return `Attached to ${object.object_id}.`;
  };
  const count = refsIn(refs.value).length;
  return (
    <Deed
      title="Attach evidence"
      testId="deed-evidence"
      question={`Attach ${count === 1 ? "one reference" : `${count} references`} to ${object.object_id}?`}
      act={attach}
      onDone={onDone}
    >
      <Refs value={refs.value} needed onType={(text) => (refs.value = text)} testId="deed-evidence-refs" />
      {object.unknown_type !== null && (
        <label>
          it is unknown because
          <select
            value={unknown.value}
            onChange={({ currentTarget }) => {
              unknown.value = currentTarget.value;
            }}
            data-testid="deed-evidence-unknown"
          >
            <option value="">{`as before: ${said(object.unknown_type)}`}</option>
            {UNKNOWNS.map((word) => (
              <option key={word} value={word}>
                {said(word)}
              </option>
            ))}
          </select>
        </label>
      )}
    </Deed>
  );
}

function Refill({ shown: { object }, onDone }: DeedsProps) {
  const units = useSignal(object.auto_verify_budget ?? 1);
  const refill = async (reason: string, user: string | null) => {
    const body = { reason, budget: units.value };
    const names = namesOf(object);
    const answer = await api.post("/scheduler/objects/refill/{object_type}/{object_id}", names, body, user);
    return `${object.object_id} has ${counted(answer.object.verify_budget_left, "verification")} left.`;
  };
  return (
    <Deed
      title="Refill the budget"
      testId="deed-refill"
      question={`Give ${object.object_id} ${units.value} verifications, in place of the ${object.verify_budget_left} left?`}
      act={refill}
      onDone={onDone}
    >
      <label>
        verifications
        <input
          type="number"
          min={0}
          max={BUDGET_MOST}
          required
          value={units.value}
          onInput={({ currentTarget }) => {
            units.value = currentTarget.valueAsNumber;
          }}
          data-testid="deed-refill-units"
        />
      </label>
    </Deed>
  );
}

const DATES = { expires_at: "expires at", review_due_at: "review due at" } as const;

function Amend({ shown: { object }, onDone }: DeedsProps) {
  const dates = useSignal<Readonly<Record<string, string>>>({});
  const refuted = useSignal("");
  const wishes = amendmentOf(dates.value, refuted.value);
  const amend = async (reason: string, user: string | null) => {
    const body = { ...wishes, reason, version: object.version };
    await api.post("/scheduler/objects/amend/{object_type}/{object_id}", namesOf(object), body, user);
    dates.value = {};
    refuted.value = "";
    return `${object.object_id} is amended.`;
  };
  const names = Object.keys(wishes).map(said).join(", ");
  return (
    <Deed
      title="Amend"
      testId="deed-amend"
      question={names === "" ? "Nothing is filled in." : `Change ${names} of ${object.object_id}?`}
      act={amend}
      onDone={onDone}
    >
      {Object.entries(DATES).map(([name, words]) => (
        <label key={name}>
          {words}
          <input
            type="datetime-local"
            value={dates.value[name] ?? ""}
            onInput={({ currentTarget }) => {
              dates.value = { ...dates.value, [name]: currentTarget.value };
            }}
            data-testid={`deed-amend-${name}`}
          />
        </label>
      ))}
      <label class="gate-reason">
        refuted if
        <input
          value={refuted.value}
          placeholder={object.falsify_if ?? ""}
          onInput={({ currentTarget }) => {
            refuted.value = currentTarget.value;
          }}
          data-testid="deed-amend-falsify_if"
        />
      </label>
    </Deed>
  );
}

/** What was filled in, dates of the reader's own clock as moments. */
export function amendmentOf(dates: Readonly<Record<string, string>>, refuted: string): Record<string, string> {
  const moments = Object.entries(dates).flatMap(([name, text]) =>
    text === "" ? [] : [[name, new Date(text).toISOString()] as const],
  );
  return Object.fromEntries(refuted.trim() === "" ? moments : [...moments, ["falsify_if", refuted.trim()] as const]);
}

function RolledBack({ shown: { object }, onDone }: DeedsProps) {
  const report = async (reason: string, user: string | null) => {
    const names = namesOf(object);
    await api.post("/scheduler/objects/rollback-finished/{object_type}/{object_id}", names, { reason }, user);
    return `The rollback of ${object.object_id} is finished; it may be archived.`;
  };
  return (
    <Deed
      title="Report the rollback finished"
      testId="deed-rollback"
      question={`Is all that was built on ${object.object_id} taken back? It may be archived then.`}
      act={report}
      onDone={onDone}
    />
  );
}

interface RefsProps {
  readonly value: string;
  readonly needed: boolean;
  readonly onType: (text: string) => void;
  readonly testId: string;
}

function Refs({ value, needed, onType, testId }: RefsProps) {
  return (
    <label class="gate-reason">
      evidence
      <input
        value={value}
        required={needed}
        placeholder="note:1, memory:harbour"
        onInput={({ currentTarget }) => onType(currentTarget.value)}
        data-testid={testId}
      />
    </label>
  );
}

/** The references in a line, between commas. */
export function refsIn(line: string): string[] {
  return line
    .split(",")
    .map((ref) => ref.trim())
    .filter((ref) => ref !== "");
}

function namesOf({ object_type, object_id }: { readonly object_type: string; readonly object_id: string }) {
  return { object_type, object_id };
}
