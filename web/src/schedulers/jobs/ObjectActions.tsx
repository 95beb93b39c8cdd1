/** Operator actions on an object: decide, attach evidence, amend, refill the budget, mark a rollback as finished. */

import { useSignal } from "@preact/signals";

import { api } from "../../api/server";
import type { SchedulerShownObject, SchedulerWhyObject } from "../../api/types";
import { counted } from "../../wording";
import { placeOf, readable } from "./model";
import { OperatorAction } from "./OperatorAction";

const UNKNOWN_TYPES = ["multipath", "out_of_scope", "ontic_unknowable"];
const MAX_BUDGET = 1000;

interface ObjectActionsProps {
  readonly shown: SchedulerShownObject;
  readonly why: SchedulerWhyObject;
  readonly onDone: () => void;
}

export function ObjectActions(props: ObjectActionsProps) {
  const hasOpenRollback = props.shown.rollbacks.some(({ finished_at }) => finished_at === null);
  return (
    <div class="object-actions" role="group" aria-label="Actions" data-testid="object-actions">
      <h3>Actions</h3>
      {props.why.ways_out.length > 0 && <Decide {...props} />}
      <Attach {...props} />
      {props.why.next_action !== null && <Amend {...props} />}
      <Refill {...props} />
      {hasOpenRollback && <FinishRollback {...props} />}
    </div>
  );
}

function Decide({ shown: { object }, why, onDone }: ObjectActionsProps) {
  const choice = useSignal(0);
  const refs = useSignal("");
  const chosen = why.ways_out[choice.value] ?? why.ways_out[0];
  if (chosen === undefined) return null;
  const { action, finding, leads_to } = chosen;
  const decide = async (reason: string, user: string | null) => {
    const body = { action, finding, reason, evidence_refs: refsIn(refs.value), version: object.version };
    const answer = await api.post("/scheduler/objects/decide/{object_type}/{object_id}", namesOf(object), body, user);
    refs.value = "";
    const state = `${object.object_id} is now ${readable(placeOf(answer.object))}.`;
    return answer.outcome === "transitioned"
      ? state
      : `No change: ${answer.reason}. ${object.object_id} is still ${readable(placeOf(answer.object))}.`;
  };
  return (
    <OperatorAction
      title="Decide"
      testId="action-decide"
      question={`Change ${object.object_id} from ${readable(placeOf(object))} to ${readable(leads_to)}?`}
      act={decide}
      onDone={onDone}
    >
      <label>
        finding
        <select
          value={String(choice.value)}
          onChange={({ currentTarget }) => {
            choice.value = Number(currentTarget.value);
          }}
          data-testid="action-decide-finding"
        >
          {why.ways_out.map((way, index) => (
            <option key={`${way.action} ${way.finding}`} value={String(index)}>
              {`${way.action}: ${readable(way.finding)} → ${readable(way.leads_to)}`}
            </option>
          ))}
        </select>
      </label>
      <Refs value={refs.value} required={false} onType={(text) => (refs.value = text)} testId="action-decide-refs" />
    </OperatorAction>
  );
}

function Attach({ shown: { object }, onDone }: ObjectActionsProps) {
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
    return `Attached evidence to ${object.object_id}.`;
  };
  const count = refsIn(refs.value).length;
  return (
    <OperatorAction
      title="Attach evidence"
      testId="action-evidence"
      question={`Attach ${count === 1 ? "one reference" : `${count} references`} to ${object.object_id}?`}
      act={attach}
      onDone={onDone}
    >
      <Refs value={refs.value} required onType={(text) => (refs.value = text)} testId="action-evidence-refs" />
      {object.unknown_type !== null && (
        <label>
          unknown because
          <select
            value={unknown.value}
            onChange={({ currentTarget }) => {
              unknown.value = currentTarget.value;
            }}
            data-testid="action-evidence-unknown"
          >
            <option value="">{`unchanged (${readable(object.unknown_type)})`}</option>
            {UNKNOWN_TYPES.map((word) => (
              <option key={word} value={word}>
                {readable(word)}
              </option>
            ))}
          </select>
        </label>
      )}
    </OperatorAction>
  );
}

function Refill({ shown: { object }, onDone }: ObjectActionsProps) {
  const units = useSignal(object.auto_verify_budget ?? 1);
  const refill = async (reason: string, user: string | null) => {
    const body = { reason, budget: units.value };
    const names = namesOf(object);
    const answer = await api.post("/scheduler/objects/refill/{object_type}/{object_id}", names, body, user);
    return `${object.object_id} has ${counted(answer.object.verify_budget_left, "verification")} left.`;
  };
  return (
    <OperatorAction
      title="Refill budget"
      testId="action-refill"
      question={`Set the budget of ${object.object_id} to ${units.value} verifications (now ${object.verify_budget_left})?`}
      act={refill}
      onDone={onDone}
    >
      <label>
        verifications
        <input
          type="number"
          min={0}
          max={MAX_BUDGET}
          required
          value={units.value}
          onInput={({ currentTarget }) => {
            units.value = currentTarget.valueAsNumber;
          }}
          data-testid="action-refill-units"
        />
      </label>
    </OperatorAction>
  );
}

const DATES = { expires_at: "expires at", review_due_at: "review due at" } as const;

function Amend({ shown: { object }, onDone }: ObjectActionsProps) {
  const dates = useSignal<Readonly<Record<string, string>>>({});
  const falsifyIf = useSignal("");
  const changes = amendmentOf(dates.value, falsifyIf.value);
  const amend = async (reason: string, user: string | null) => {
    const body = { ...changes, reason, version: object.version };
    await api.post("/scheduler/objects/amend/{object_type}/{object_id}", namesOf(object), body, user);
    dates.value = {};
    falsifyIf.value = "";
    return `Amended ${object.object_id}.`;
  };
  const names = Object.keys(changes).map(readable).join(", ");
  return (
    <OperatorAction
      title="Amend"
      testId="action-amend"
      question={names === "" ? "No changes entered." : `Change ${names} of ${object.object_id}?`}
      act={amend}
      onDone={onDone}
    >
      {Object.entries(DATES).map(([name, label]) => (
        <label key={name}>
          {label}
          <input
            type="datetime-local"
            value={dates.value[name] ?? ""}
            onInput={({ currentTarget }) => {
              dates.value = { ...dates.value, [name]: currentTarget.value };
            }}
            data-testid={`action-amend-${name}`}
          />
        </label>
      ))}
      <label class="gate-reason">
        refuted if
        <input
          value={falsifyIf.value}
          placeholder={object.falsify_if ?? ""}
          onInput={({ currentTarget }) => {
            falsifyIf.value = currentTarget.value;
          }}
          data-testid="action-amend-falsify_if"
        />
      </label>
    </OperatorAction>
  );
}

/** The filled-in fields, with local dates converted to UTC. */
export function amendmentOf(dates: Readonly<Record<string, string>>, falsifyIf: string): Record<string, string> {
  const moments = Object.entries(dates).flatMap(([name, text]) =>
    text === "" ? [] : [[name, new Date(text).toISOString()] as const],
  );
  const condition = falsifyIf.trim();
  return Object.fromEntries(condition === "" ? moments : [...moments, ["falsify_if", condition] as const]);
}

function FinishRollback({ shown: { object }, onDone }: ObjectActionsProps) {
  const finish = async (reason: string, user: string | null) => {
    const names = namesOf(object);
    await api.post("/scheduler/objects/rollback-finished/{object_type}/{object_id}", names, { reason }, user);
    return `Rollback finished; ${object.object_id} may be archived.`;
  };
  return (
    <OperatorAction
      title="Mark the rollback as finished"
      testId="action-rollback"
      question={`Has everything built on ${object.object_id} been rolled back? It may then be archived.`}
      act={finish}
      onDone={onDone}
    />
  );
}

interface RefsProps {
  readonly value: string;
  readonly required: boolean;
  readonly onType: (text: string) => void;
  readonly testId: string;
}

function Refs({ value, required, onType, testId }: RefsProps) {
  return (
    <label class="gate-reason">
      evidence
      <input
        value={value}
        required={required}
        placeholder="note:1, memory:harbour"
        onInput={({ currentTarget }) => onType(currentTarget.value)}
        data-testid={testId}
      />
    </label>
  );
}

/** Split a comma-separated line of references. */
export function refsIn(line: string): string[] {
  return line
    .split(",")
    .map((ref) => ref.trim())
    .filter((ref) => ref !== "");
}

function namesOf({ object_type, object_id }: { readonly object_type: string; readonly object_id: string }) {
  return { object_type, object_id };
}
