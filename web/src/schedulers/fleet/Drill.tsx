/** Drills and errands: a task of one's own, and something that goes wrong with a simulated truck. */

import { useSignal } from "@preact/signals";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { api, canCommand } from "../../api/server";
import type { FleetNow } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";

/** What can be drilled, as an event of a scenario says it; what happens once has no `forMs`. */
const FAULTS: readonly { readonly title: string; readonly event: JsonObject & { readonly forMs?: number } }[] = [
  { title: "something stands in its way", event: { type: "STAND", forMs: 15_000 } },
  { title: "nothing is heard of it", event: { type: "SILENCE", forMs: 15_000 } },
  { title: "its position jumps", event: { type: "POSE_JUMP", forMs: 15_000, dxM: 0.9, dyM: 0 } },
  { title: "somebody carries it 3 m east", event: { type: "CARRIED", dxM: 3, dyM: 0 } },
  { title: "it reports a fault", event: { type: "FAULT", forMs: 15_000 } },
  { title: "its wheels do not turn", event: { type: "STUCK", forMs: 15_000 } },
  // Longer than an operation may take.
  { title: "its loading does not end", event: { type: "OPERATION_HANGS", forMs: 150_000 } },
];

interface DrillProps {
  readonly now: FleetNow;
  /** Nothing can be made to go wrong with real trucks. */
  readonly simulated: boolean;
  readonly address: EngineAddress;
  readonly onDone: () => void;
}

export function Drill({ now, simulated, address, onDone }: DrillProps) {
  const told = useSignal("");
  const error = useSignal<ApiError | null>(null);
  const send = (path: "tasks" | "faults", body: JsonObject, said: string) => async () => {
    error.value = null;
    try {
      await api.postTo(address, path, body);
      told.value = said;
      onDone();
    } catch (thrown) {
      told.value = "";
      error.value = asApiError(thrown);
    }
  };
  return (
    <details class="panel fold" data-testid="panel-drill">
      <summary>{simulated ? "Send a task, or drill a failure" : "Send a task"}</summary>
      <TaskForm now={now} send={send} />
      {simulated && <FaultForm now={now} send={send} />}
      <p class="quiet" role="status">
        {told}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </details>
  );
}

type Send = (path: "tasks" | "faults", body: JsonObject, said: string) => () => Promise<void>;

interface FormProps {
  readonly now: FleetNow;
  readonly send: Send;
}

function TaskForm({ now, send }: FormProps) {
  const picks = [...new Set(now.streams.flatMap(({ pick_node_ids }) => pick_node_ids))];
  const drops = [...new Set(now.streams.flatMap(({ drop_node_ids }) => drop_node_ids))];
  const pick = useSignal(picks[0] ?? "");
  const drop = useSignal(drops[0] ?? "");
  const body = { pickNodeId: pick.value, dropNodeId: drop.value, priority: 50 };
  return (
    <form
      class="drill-form"
      aria-label="Send a task"
      onSubmit={(event) => {
        event.preventDefault();
        void send("tasks", body, `A task from ${pick.value} to ${drop.value} is taken.`)();
      }}
    >
      <Choice name="from" options={picks} value={pick.value} onChange={(value) => (pick.value = value)} />
      <Choice name="to" options={drops} value={drop.value} onChange={(value) => (drop.value = value)} />
      <button type="submit" class="button" disabled={!canCommand.value}>
        Send the task
      </button>
    </form>
  );
}

function FaultForm({ now, send }: FormProps) {
  const robots = now.trucks.map(({ robot_id }) => robot_id);
  const robot = useSignal(robots[0] ?? "");
  const title = useSignal(FAULTS[0]?.title ?? "");
  const event = FAULTS.find((one) => one.title === title.value)?.event;
  const lasts = event?.forMs === undefined ? "" : `, for ${event.forMs / 1000} s`;
  return (
    <form
      class="drill-form"
      aria-label="Drill a failure"
      onSubmit={(submit) => {
        submit.preventDefault();
        void send("faults", { robotId: robot.value, ...event }, `${robot.value}: ${title.value}${lasts}.`)();
      }}
    >
      <Choice name="truck" options={robots} value={robot.value} onChange={(value) => (robot.value = value)} />
      <Choice
        name="what goes wrong"
        options={FAULTS.map((one) => one.title)}
        value={title.value}
        onChange={(value) => (title.value = value)}
      />
      <button type="submit" class="button" disabled={!canCommand.value} data-testid="do-drill">
        Let it happen
      </button>
    </form>
  );
}

interface ChoiceProps {
  readonly name: string;
  readonly options: readonly string[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function Choice({ name, options, value, onChange }: ChoiceProps) {
  return (
    <label>
      {name}{" "}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        {options.map((option) => (
          <option key={option} value={option}>
            {option}
          </option>
        ))}
      </select>
    </label>
  );
}
