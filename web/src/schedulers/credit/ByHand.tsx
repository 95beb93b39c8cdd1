/** Pay and clear by hand: what was done is told, and where a payment is refused, why, and the line where it stuck. */

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";

import { ApiError, asApiError } from "../../api/client";
import { api, canCommand } from "../../api/server";
import type { ClearingDoneView, PaymentDone, Reason } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { ReasonChain } from "../../components/ReasonChain";
import { counted } from "../../wording";
import type { Chosen, LineEnds, Network } from "./network/model";
import { bottleneckOf, causeOf, nameOf, withNames } from "./network/model";
import { amount, cause } from "./wording";

const RUN = "/api/v1/simulator/runs/{run_id}";

interface ByHandProps {
  readonly runId: string;
  readonly network: Network;
  readonly active: boolean;
  readonly chosen: Chosen;
  readonly onChoose: (chosen: Chosen) => void;
}

type Answer =
  | { readonly kind: "paid"; readonly done: PaymentDone }
  | { readonly kind: "cleared"; readonly done: ClearingDoneView }
  | { readonly kind: "reason"; readonly reason: Reason }
  | { readonly kind: "refused"; readonly error: ApiError; readonly reason: Reason | null }
  | { readonly kind: "trouble"; readonly error: ApiError };

interface Payment {
  readonly from: string;
  readonly to: string;
  readonly amount: string;
}

export function ByHand({ runId, network, active, chosen, onChoose }: ByHandProps) {
  const id = useId();
  const wish = useSignal<Payment>({ from: "", to: "", amount: "10" });
  const answer = useSignal<Answer | null>(null);
  const busy = useSignal(false);
  const names = { run_id: runId };
  const { equivalent } = network;
  useEffect(() => {
    if (chosen?.kind === "node") wish.value = { ...wish.value, from: chosen.id };
  }, [chosen?.kind === "node" ? chosen.id : ""]);

  const act = async (task: () => Promise<Answer>) => {
    busy.value = true;
    try {
      answer.value = await task();
    } catch (thrown) {
      answer.value = { kind: "trouble", error: asApiError(thrown) };
    } finally {
      busy.value = false;
    }
  };
  const ask = () => api.post(`${RUN}/why`, names, { question: { ...wish.value, equivalent } });
  const pay = () =>
    act(async () => {
      const { from, to, amount: sum } = wish.value;
      try {
        const body = { from_pid: from, to_pid: to, equivalent, amount: sum };
        return { kind: "paid", done: await api.post(`${RUN}/actions/payment-real`, names, body) };
      } catch (thrown) {
        // That a payment finds no way is what one wants to know; anything else is trouble.
        if (!(thrown instanceof ApiError) || thrown.status !== 409) throw thrown;
        const reason = await ask().catch(() => null);
        return { kind: "refused", error: thrown, reason };
      }
    });
  const clear = () =>
    act(async () => ({
      kind: "cleared",
      done: await api.post(`${RUN}/actions/clearing-real`, names, { equivalent }),
    }));
  const closed = busy.value || !active || !canCommand.value;
  const unready = wish.value.from === "" || wish.value.to === "" || wish.value.amount.trim() === "";

  return (
    <section class="panel" aria-labelledby={`${id}title`} data-testid="panel-by-hand">
      <h2 id={`${id}title`}>By hand</h2>
      <form
        class="credit-form"
        onSubmit={(event) => {
          event.preventDefault();
          void pay();
        }}
      >
        <Who name="from" word="Payer" network={network} wish={wish} />
        <Who name="to" word="Payee" network={network} wish={wish} />
        <label for={`${id}amount`}>
          Amount, {equivalent}
          <input
            id={`${id}amount`}
            inputMode="decimal"
            required
            value={wish.value.amount}
            onInput={(event) => (wish.value = { ...wish.value, amount: event.currentTarget.value })}
            data-testid="pay-amount"
          />
        </label>
        <div class="credit-buttons">
          <button type="submit" class="button button-main" disabled={closed || unready} data-testid="pay">
            Pay
          </button>
          <button
            type="button"
            class="button"
            disabled={busy.value || unready}
            onClick={() => void act(async () => ({ kind: "reason", reason: await ask() }))}
            data-testid="ask-why"
          >
            Could it be paid?
          </button>
          <button type="button" class="button" disabled={closed} onClick={() => void clear()} data-testid="clear">
            Clear debts now
          </button>
        </div>
      </form>
      <div aria-live="polite">
        {answer.value !== null && <Told answer={answer.value} network={network} onChoose={onChoose} />}
      </div>
    </section>
  );
}

interface WhoProps {
  readonly name: "from" | "to";
  readonly word: string;
  readonly network: Network;
  readonly wish: Signal<Payment>;
}

function Who({ name, word, network, wish }: WhoProps) {
  const id = useId();
  return (
    <label for={id}>
      {word}
      <select
        id={id}
        required
        value={wish.value[name]}
        onChange={(event) => (wish.value = { ...wish.value, [name]: event.currentTarget.value })}
        data-testid={`pay-${name}`}
      >
        <option value="">choose</option>
        {[...network.nodes.keys()].map((pid) => (
          <option key={pid} value={pid}>
            {nameOf(network, pid)}
          </option>
        ))}
      </select>
    </label>
  );
}

interface ToldProps {
  readonly answer: Answer;
  readonly network: Network;
  readonly onChoose: (chosen: Chosen) => void;
}

function Told({ answer, network, onChoose }: ToldProps) {
  switch (answer.kind) {
    case "paid": {
      const { from_pid, to_pid, amount: sum, equivalent } = answer.done;
      return (
        <p class="note note-done" data-testid="paid">
          {nameOf(network, from_pid)} paid {amount(sum)} {equivalent} to {nameOf(network, to_pid)}.
        </p>
      );
    }
    case "cleared":
      return <Cleared done={answer.done} network={network} />;
    case "reason":
      return (
        <div class="note" data-testid="could-be-paid">
          <ReasonChain reason={answer.reason} />
        </div>
      );
    case "refused":
      return <Refused error={answer.error} reason={answer.reason} network={network} onChoose={onChoose} />;
    case "trouble":
      return <ErrorNote error={answer.error} />;
  }
}

interface RefusedProps {
  readonly error: ApiError;
  readonly reason: Reason | null;
  readonly network: Network;
  readonly onChoose: (chosen: Chosen) => void;
}

function Refused({ error, reason, network, onChoose }: RefusedProps) {
  const line = bottleneckOf(error.details);
  return (
    <div class="note note-refused" data-testid="refused" data-code={error.code}>
      <p>
        Refused, {cause(causeOf(error.code, error.details))}: {withNames(network, error.message)}.
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
  readonly onChoose: (chosen: Chosen) => void;
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

const CIRCLES_MOST = 5;

function Cleared({ done, network }: { readonly done: ClearingDoneView; readonly network: Network }) {
  if (done.cleared_cycles === 0) {
    return (
      <p class="note" data-testid="cleared">
        Nothing to clear: no debts go round in a circle.
      </p>
    );
  }
  return (
    <div class="note note-done" data-testid="cleared">
      <p>
        Cleared {counted(done.cleared_cycles, "circle")}, {amount(done.total_cleared_amount)} {done.equivalent} in all.
      </p>
      <ul>
        {done.cycles.slice(0, CIRCLES_MOST).map((circle, place) => (
          <li key={place}>
            {amount(circle.cleared_amount)} round {circle.edges.map(({ from }) => nameOf(network, from)).join(" → ")}
          </li>
        ))}
      </ul>
      {done.cycles.length > CIRCLES_MOST && <p class="quiet">… and {done.cycles.length - CIRCLES_MOST} more</p>}
    </div>
  );
}
