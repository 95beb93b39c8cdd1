/** Forms to send a task and to simulate a fault of a truck. */

import { useSignal } from "@preact/signals";

import type { ApiError, EngineAddress } from "../../api/client";
import { asApiError } from "../../api/client";
import type { JsonObject } from "../../api/json";
import { api, canCommand } from "../../api/server";
import type { FleetNow } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";

/** Faults as events of a scenario; instantaneous ones have no `forMs`. */
const FAULTS: readonly { readonly title: string; readonly event: JsonObject & { readonly forMs?: number } }[] = [
  { title: "obstacle in its path", event: { type: "STAND", forMs: 15_000 } },
  { title: "no reports", event: { type: "SILENCE", forMs: 15_000 } },
  { title: "position jump", event: { type: "POSE_JUMP", forMs: 15_000, dxM: 0.9, dyM: 0 } },
  { title: "carried 3 m east", event: { type: "CARRIED", dxM: 3, dyM: 0 } },
  { title: "reported fault", event: { type: "FAULT", forMs: 15_000 } },
  { title: "blocked wheels", event: { type: "STUCK", forMs: 15_000 } },
  // Longer than the timeout of an operation.
  { title: "loading that does not end", event: { type: "OPERATION_HANGS", forMs: 150_000 } },
];

interface SimulationProps {
  readonly now: FleetNow;
  /** Whether the trucks are simulated; real trucks have no faults to simulate. */
  readonly simulated: boolean;
  readonly address: EngineAddress;
  readonly onDone: () => void;
}

export function Simulation({ now, simulated, address, onDone }: SimulationProps) {
  const status = useSignal("");
  const error = useSignal<ApiError | null>(null);
  const send = (path: "tasks" | "faults", body: JsonObject, message: string) => async () => {
    error.value = null;
    try {
      await api.postTo(address, path, body);
      status.value = message;
      onDone();
    } catch (thrown) {
      status.value = "";
      error.value = asApiError(thrown);
    }
  };
  return (
    <details class="panel fold" data-testid="panel-simulation">
      <summary>{simulated ? "Send a task, or simulate a fault" : "Send a task"}</summary>
      <TaskForm now={now} send={send} />
      {simulated && <FaultForm now={now} send={send} />}
      <p class="quiet" role="status">
        {status}
      </p>
      {error.value !== null && <ErrorNote error={error.value} />}
    </details>
  );
}

type Send = (path: "tasks" | "faults", body: JsonObject, message: string) => () => Promise<void>;

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
      class="simulation-form"
      aria-label="Send a task"
      onSubmit={(event) => {
        event.preventDefault();
        void send("tasks", body, `Accepted a task from ${pick.value} to ${drop.value}.`)();
      }}
    >
      <Choice name="from" options={picks} value={pick.value} onChange={(value) => (pick.value = value)} />
      <Choice name="to" options={drops} value={drop.value} onChange={(value) => (drop.value = value)} />
      <button type="submit" class="button" disabled={!canCommand.value}>
        Send task
      </button>
    </form>
  );
}

function FaultForm({ now, send }: FormProps) {
  const robots = now.trucks.map(({ robot_id }) => robot_id);
  const robot = useSignal(robots[0] ?? "");
  const title = useSignal(FAULTS[0]?.title ?? "");
  const event = FAULTS.find((fault) => fault.title === title.value)?.event;
  const duration = event?.forMs === undefined ? "" : `, for ${event.forMs / 1000} s`;
  return (
    <form
      class="simulation-form"
      aria-label="Simulate a fault"
      onSubmit={(submit) => {
        submit.preventDefault();
        void send("faults", { robotId: robot.value, ...event }, `${robot.value}: ${title.value}${duration}.`)();
      }}
    >
      <Choice name="truck" options={robots} value={robot.value} onChange={(value) => (robot.value = value)} />
      <Choice
        name="fault"
        options={FAULTS.map((fault) => fault.title)}
        value={title.value}
        onChange={(value) => (title.value = value)}
      />
      <button type="submit" class="button" disabled={!canCommand.value} data-testid="start-fault">
        Start
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
