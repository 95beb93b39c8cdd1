/** One truck: why it stands, as one sentence and as a list to the root, and what a person can do about it. */

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { api, mayCommand } from "../../api/server";
import type { FleetNow, Reason, TruckNow } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { ReasonChain } from "../../components/ReasonChain";
import { condition, lasting, phase, speed } from "./wording";

interface TruckPanelProps {
  readonly truck: TruckNow;
  readonly now: FleetNow;
  readonly address: EngineAddress;
  readonly live: boolean;
  readonly onChoose: (robot: string | null) => void;
  readonly onDone: () => void;
}

export function TruckPanel({ truck, now, address, live, onChoose, onDone }: TruckPanelProps) {
  const chain = truck.because;
  return (
    <section class="panel truck-panel" aria-label={`Truck ${truck.robot_id}`} data-testid="panel-truck">
      <div class="panel-head">
        <h2>{truck.robot_id}</h2>
        <span class="count">
          {condition(truck)}, {phase(truck)}
          {truck.task_id === null ? "" : `, task ${truck.task_id}`}
        </span>
        <button type="button" class="button" onClick={() => onChoose(null)}>
          Close
        </button>
      </div>
      <p class="truck-why" data-testid="truck-why">
        {truck.sentence}
      </p>
      <dl class="truck-facts">
        <dt>speed</dt>
        <dd>{speed(truck.speed)}</dd>
        <dt>heard of</dt>
        <dd>{lasting(truck.report_age)} ago</dd>
        <dt>load</dt>
        <dd>{truck.load ? "on board" : "none"}</dd>
        <dt>parks at</dt>
        <dd>{truck.park_node_id}</dd>
      </dl>
      {chain.length > 1 && (
        <ol class="truck-chain" aria-label="Who waits for whom" data-testid="truck-chain">
          {chain.map((robot) => (
            <li key={robot}>
              <button type="button" class="link-button" onClick={() => onChoose(robot)}>
                {robot}
              </button>{" "}
              {now.trucks.find((one) => one.robot_id === robot)?.sentence ?? ""}
            </li>
          ))}
        </ol>
      )}
      {live && <Because address={address} robot={truck.robot_id} tick={now.tick} />}
      {live && <Actions truck={truck} address={address} onDone={onDone} />}
    </section>
  );
}

/** The whole reason with its facts, asked for when somebody wants to see it. */
function Because({
  address,
  robot,
  tick,
}: {
  readonly address: EngineAddress;
  readonly robot: string;
  readonly tick: number;
}) {
  const open = useSignal(false);
  const reason = useSignal<Reason | null>(null);
  const second = Math.floor(tick / 10);
  useEffect(() => {
    if (!open.value) return;
    let over = false;
    api.why(address, { robot }).then(
      (told) => {
        if (!over) reason.value = told;
      },
      () => undefined,
    );
    return () => {
      over = true;
    };
  }, [open.value, robot, second]);
  return (
    <details class="fold" onToggle={(event) => (open.value = (event.currentTarget as HTMLDetailsElement).open)}>
      <summary>All facts</summary>
      {reason.value !== null && <ReasonChain reason={reason.value} />}
    </details>
  );
}

interface Deed {
  readonly type: string;
  readonly title: string;
  readonly question: string;
  /** Whether it has to be said twice, with the word that the truck was secured. */
  readonly grave?: boolean;
}

function deedsFor({ robot_id, paused }: TruckNow): readonly Deed[] {
  const pause: Deed = paused
    ? { type: "RESUME_ROBOT", title: "Let it go on", question: `${robot_id} may drive again.` }
    : { type: "PAUSE_ROBOT", title: "Pause", question: `${robot_id} stops where it can and stays there.` };
  return [
    pause,
    { type: "CLEAR_FAULT", title: "Clear fault", question: `The fault of ${robot_id} is over, and it may go on.` },
    {
      type: "REMOVE_ROBOT",
      title: "Remove",
      question: `${robot_id} was taken out of the hall or secured by hand; all that it holds is freed.`,
      grave: true,
    },
  ];
}

interface ActionsProps {
  readonly truck: TruckNow;
  readonly address: EngineAddress;
  readonly onDone: () => void;
}

function Actions({ truck, address, onDone }: ActionsProps) {
  const asked = useSignal<Deed | null>(null);
  const reason = useSignal("");
  const first = useSignal<string | null>(null);
  const told = useSignal("");
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);
  const begin = (deed: Deed) => {
    asked.value = deed;
    first.value = null;
    told.value = "";
    error.value = null;
  };
  const doIt = async (deed: Deed) => {
    busy.value = true;
    error.value = null;
    try {
      const confirmation: JsonObject = first.value === null ? {} : { confirmationOf: first.value };
      const body: JsonObject = {
        type: deed.type,
        robotId: truck.robot_id,
        reason: reason.value.trim(),
        ...confirmation,
      };
      const wish: JsonObject = deed.grave ? { ...body, physicallySecured: true } : body;
      const answer = await api.post("/api/v1/fleet/{fleet}/actions", { fleet: address.engine }, wish);
      told.value = answer.message;
      if (answer.code === "CONFIRMATION_NEEDED") first.value = answer.actionId;
      else asked.value = null;
      onDone();
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      busy.value = false;
    }
  };
  const deed = asked.value;
  return (
    <div class="truck-actions" role="group" aria-label="What a person can do">
      {deedsFor(truck).map((one) => (
        <button
          key={one.type}
          type="button"
          class="button"
          disabled={!mayCommand.value}
          onClick={() => begin(one)}
          data-testid={`do-${one.type}`}
        >
          {one.title}
        </button>
      ))}
      {deed !== null && (
        <form
          class="truck-question"
          onSubmit={(event) => {
            event.preventDefault();
            void doIt(deed);
          }}
        >
          <p>{deed.question}</p>
          {first.value !== null && <p class="truck-again">Say it again: this cannot be taken back.</p>}
          <label>
            because{" "}
            <input
              required
              maxLength={500}
              value={reason.value}
              onInput={({ currentTarget }) => (reason.value = currentTarget.value)}
              data-testid="truck-reason"
            />
          </label>
          <button type="submit" class="button button-main" disabled={busy.value} data-testid="truck-yes">
            {first.value === null ? "Do it" : "Yes, remove it"}
          </button>
          <button type="button" class="button" onClick={() => (asked.value = null)}>
            No
          </button>
        </form>
      )}
      <p class="quiet" role="status" data-testid="truck-told">
        {told}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </div>
  );
}
