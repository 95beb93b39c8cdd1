/** Manual payments and clearing, with the result, and for a refused payment the reason and its bottleneck. */

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";

import { ApiError, asApiError } from "../../api/client";
import { api, canCommand } from "../../api/server";
import type { ClearingDoneView, PaymentDone, Reason } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { ReasonChain } from "../../components/ReasonChain";
import { counted } from "../../wording";
import type { LineEnds, Network, Selection } from "./network/model";
import { bottleneckOf, causeOf, nameOf, withNames } from "./network/model";
import { amount, cause } from "./wording";

const RUN = "/api/v1/simulator/runs/{run_id}";

interface ManualPaymentProps {
  readonly runId: string;
  readonly network: Network;
  readonly active: boolean;
  readonly chosen: Selection;
  readonly onChoose: (chosen: Selection) => void;
}

type Result =
  | { readonly kind: "paid"; readonly done: PaymentDone }
  | { readonly kind: "cleared"; readonly done: ClearingDoneView }
  | { readonly kind: "reason"; readonly reason: Reason }
  | { readonly kind: "refused"; readonly error: ApiError; readonly reason: Reason | null }
  | { readonly kind: "failed"; readonly error: ApiError };

interface Payment {
  readonly from: string;
  readonly to: string;
  readonly amount: string;
}

export function ManualPayment({ runId, network, active, chosen, onChoose }: ManualPaymentProps) {
  const id = useId();
  const payment = useSignal<Payment>({ from: "", to: "", amount: "10" });
  const result = useSignal<Result | null>(null);
  const busy = useSignal(false);
  const path = { run_id: runId };
  const { equivalent } = network;
  useEffect(() => {
    if (chosen?.kind === "node") payment.value = { ...payment.value, from: chosen.id };
  }, [chosen?.kind === "node" ? chosen.id : ""]);

  const act = async (task: () => Promise<Result>) => {
    busy.value = true;
    try {
      result.value = await task();
    } catch (thrown) {
      result.value = { kind: "failed", error: asApiError(thrown) };
    } finally {
      busy.value = false;
    }
  };
  const explain = () => api.post(`${RUN}/why`, path, { question: { ...payment.value, equivalent } });
  const pay = () =>
    act(async () => {
      const { from, to, amount: sum } = payment.value;
      try {
        const body = { from_pid: from, to_pid: to, equivalent, amount: sum };
        return { kind: "paid", done: await api.post(`${RUN}/actions/payment-real`, path, body) };
      } catch (thrown) {
        // 409 is a refused payment, which is a result; anything else is an error.
        if (!(thrown instanceof ApiError) || thrown.status !== 409) throw thrown;
        const reason = await explain().catch(() => null);
        return { kind: "refused", error: thrown, reason };
      }
    });
  const clear = () =>
    act(async () => ({
      kind: "cleared",
      done: await api.post(`${RUN}/actions/clearing-real`, path, { equivalent }),
    }));
  const isDisabled = busy.value || !active || !canCommand.value;
  const isIncomplete = payment.value.from === "" || payment.value.to === "" || payment.value.amount.trim() === "";

  return (
    <section class="panel" aria-labelledby={`${id}title`} data-testid="panel-manual-payment">
      <h2 id={`${id}title`}>Manual payment</h2>
      <form
        class="credit-form"
        onSubmit={(event) => {
          event.preventDefault();
          void pay();
        }}
      >
        <ParticipantSelect name="from" label="Payer" network={network} payment={payment} />
        <ParticipantSelect name="to" label="Payee" network={network} payment={payment} />
        <label for={`${id}amount`}>
          Amount, {equivalent}
          <input
            id={`${id}amount`}
            inputMode="decimal"
            required
            value={payment.value.amount}
            onInput={(event) => (payment.value = { ...payment.value, amount: event.currentTarget.value })}
            data-testid="pay-amount"
          />
        </label>
        <div class="credit-buttons">
          <button type="submit" class="button button-main" disabled={isDisabled || isIncomplete} data-testid="pay">
            Pay
          </button>
          <button
            type="button"
            class="button"
            disabled={busy.value || isIncomplete}
            onClick={() => void act(async () => ({ kind: "reason", reason: await explain() }))}
            data-testid="ask-why"
          >
            Check this payment
          </button>
          <button type="button" class="button" disabled={isDisabled} onClick={() => void clear()} data-testid="clear">
            Clear debts now
          </button>
        </div>
      </form>
      <div aria-live="polite">
        {result.value !== null && <ResultNote result={result.value} network={network} onChoose={onChoose} />}
      </div>
    </section>
  );
}

interface ParticipantSelectProps {
  readonly name: "from" | "to";
  readonly label: string;
  readonly network: Network;
  readonly payment: Signal<Payment>;
}

function ParticipantSelect({ name, label, network, payment }: ParticipantSelectProps) {
  const id = useId();
  return (
    <label for={id}>
      {label}
      <select
        id={id}
        required
        value={payment.value[name]}
        onChange={(event) => (payment.value = { ...payment.value, [name]: event.currentTarget.value })}
        data-testid={`pay-${name}`}
      >
        <option value="">select …</option>
        {[...network.nodes.keys()].map((pid) => (
          <option key={pid} value={pid}>
            {nameOf(network, pid)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface ResultNoteProps {
  readonly result: Result;
  readonly network: Network;
  readonly onChoose: (chosen: Selection) => void;
}

function ResultNote({ result, network, onChoose }: ResultNoteProps) {
  switch (result.kind) {
    case "paid": {
      const { from_pid, to_pid, amount: sum, equivalent } = result.done;
      return (
        <p class="note note-done" data-testid="paid">
          {nameOf(network, from_pid)} paid {amount(sum)} {equivalent} to {nameOf(network, to_pid)}.
        </p>
      );
    }
    case "cleared":
      return <Cleared done={result.done} network={network} />;
    case "reason":
      return (
        <div class="note" data-testid="payment-check">
          <ReasonChain reason={result.reason} />
        </div>
      );
    case "refused":
      return <Refused error={result.error} reason={result.reason} network={network} onChoose={onChoose} />;
    case "failed":
      return <ErrorNote error={result.error} />;
  }
}

interface RefusedProps {
  readonly error: ApiError;
  readonly reason: Reason | null;
  readonly network: Network;
  readonly onChoose: (chosen: Selection) => void;
}

function Refused({ error, reason, network, onChoose }: RefusedProps) {
  const line = bottleneckOf(error.details);
  return (
    <div class="note note-refused" data-testid="refused" data-code={error.code}>
      <p>
        Refused ({cause(causeOf(error.code, error.details))}): {withNames(network, error.message)}.
      </p>
      {reason?.because.map(({ sentence }) => (
        <p key={sentence} data-testid="refused-because">
          {withNames(network, sentence)}
        </p>
      ))}
      {line !== null && <ShowLine line={line} network={network} onChoose={onChoose} />}
    </div>
  );
}

interface ShowLineProps {
  readonly line: LineEnds;
  readonly network: Network;
  readonly onChoose: (chosen: Selection) => void;
}

export function ShowLine({ line, network, onChoose }: ShowLineProps) {
  return (
    <button
      type="button"
      class="link-button"
      onClick={() => onChoose({ kind: "line", from: line.from, to: line.to })}
      data-testid="show-line"
    >
      Show the line {nameOf(network, line.from)} → {nameOf(network, line.to)}
    </button>
  );
}

const MAX_CYCLES = 5;

function Cleared({ done, network }: { readonly done: ClearingDoneView; readonly network: Network }) {
  if (done.cleared_cycles === 0) {
    return (
      <p class="note" data-testid="cleared">
        Nothing to clear: there are no debt cycles.
      </p>
    );
  }
  return (
    <div class="note note-done" data-testid="cleared">
      <p>
        Cleared {counted(done.cleared_cycles, "cycle")}, {amount(done.total_cleared_amount)} {done.equivalent} in total.
      </p>
      <ul>
        {done.cycles.slice(0, MAX_CYCLES).map((cycle, index) => (
          <li key={index}>
            {amount(cycle.cleared_amount)}: {cycle.edges.map(({ from }) => nameOf(network, from)).join(" → ")}
          </li>
        ))}
      </ul>
      {done.cycles.length > MAX_CYCLES && <p class="quiet">… and {done.cycles.length - MAX_CYCLES} more</p>}
    </div>
  );
}
