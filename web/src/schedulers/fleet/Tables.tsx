/** Tables of trucks with their reasons, tasks, streams, alerts and incidents. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { EngineAddress } from "../../api/client";
import type { AlertNow, FleetNow, TaskNow, TruckNow } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { integer, timeSpan } from "../../wording";
import type { Action } from "./Actions";
import { Actions } from "./Actions";
import type { ListedAlert } from "./alerts";
import { listAlerts } from "./alerts";
import { useReason } from "./use_reason";
import { assignment, condition, fleetTime, phase, speed } from "./wording";

interface TruckTableProps {
  readonly now: FleetNow;
  readonly chosen: string | null;
  readonly onChoose: (robot: string | null) => void;
  readonly children?: ComponentChildren;
}

export function TruckTable({ now, chosen, onChoose, children }: TruckTableProps) {
  const columns: Column<TruckNow>[] = [
    {
      key: "truck",
      title: "truck",
      by: ({ robot_id }) => robot_id,
      cell: ({ robot_id }) => (
        <button type="button" class="link-button" onClick={() => onChoose(robot_id)} data-testid={`truck-${robot_id}`}>
          {robot_id}
        </button>
      ),
    },
    {
      key: "state",
      title: "state",
      by: condition,
      cell: (truck) => <span data-condition={condition(truck)}>{condition(truck)}</span>,
    },
    { key: "why", title: "why", wide: true, cell: ({ sentence }) => sentence },
    { key: "phase", title: "task", by: phase, cell: Assignment },
    { key: "speed", title: "speed", numeric: true, by: (truck) => truck.speed, cell: (truck) => speed(truck.speed) },
    {
      key: "wait",
      title: "waiting",
      numeric: true,
      by: ({ wait }) => wait,
      cell: ({ wait }) => (wait > 0 ? timeSpan(wait) : ""),
    },
  ];
  return (
    <section class="panel" aria-label="Trucks" data-testid="panel-trucks">
      <div class="panel-head">
        <h2>Trucks</h2>
      </div>
      <DataTable
        caption="Trucks with state, reason and task"
        columns={columns}
        rows={now.trucks}
        rowKey={({ robot_id }) => robot_id}
        current={({ robot_id }) => robot_id === chosen}
        empty="No trucks."
        testId="trucks"
      />
      {children}
    </section>
  );
}

/** The phase and task of a truck, on at most two lines. */
function Assignment(truck: TruckNow) {
  return assignment(truck).map((part) => (
    <span key={part} class="nowrap">
      {part}{" "}
    </span>
  ));
}

const TASK_COLUMNS: readonly Column<TaskNow>[] = [
  { key: "task", title: "task", by: ({ task_id }) => task_id, cell: ({ task_id }) => task_id },
  {
    key: "state",
    title: "state",
    by: ({ state }) => state,
    cell: ({ state }) => state.toLowerCase().replaceAll("_", " "),
  },
  { key: "way", title: "from → to", cell: ({ pick_node_id, drop_node_id }) => `${pick_node_id} → ${drop_node_id}` },
  {
    key: "truck",
    title: "truck",
    by: ({ robot_id }) => robot_id ?? "",
    cell: ({ robot_id }) => robot_id ?? "none",
  },
  { key: "since", title: "since", numeric: true, by: ({ since }) => since, cell: ({ since }) => fleetTime(since) },
];

const HOLD: Action = {
  type: "HOLD_TASK",
  title: "Hold",
  question: "This holds the task: no truck starts it until it is resumed.",
};
const CANCEL: Action = { type: "CANCEL_TASK", title: "Cancel", question: "This cancels the task for good." };

/** The actions on a task. A task whose goods are on a truck stays with it unless it is held. */
export function taskActions({ state, loaded, robot_id }: TaskNow): readonly Action[] {
  if (state === "HELD") {
    return [{ type: "RESUME_TASK", title: "Resume", question: "This resumes the task." }, CANCEL];
  }
  if (loaded) return [];
  if (state === "WAITING" || state === "READY") return [HOLD, CANCEL];
  const question = `This withdraws the task from ${robot_id ?? "its truck"}: another truck may take it.`;
  return [{ type: "WITHDRAW_TASK", title: "Withdraw", question }, HOLD, CANCEL];
}

interface TaskTablesProps {
  readonly now: FleetNow;
  readonly address: EngineAddress;
  readonly live: boolean;
  readonly onDone: () => void;
}

export function TaskTables({ now, address, live, onDone }: TaskTablesProps) {
  const chosen = useSignal<string | null>(null);
  const task = now.tasks.find(({ task_id }) => task_id === chosen.value);
  const reason = useReason(address, live && task !== undefined ? { task: task.task_id } : null, now.tick);
  const [first, ...others] = TASK_COLUMNS as readonly [Column<TaskNow>, ...Column<TaskNow>[]];
  const name: Column<TaskNow> = {
    ...first,
    cell: ({ task_id }) => (
      <button
        type="button"
        class="link-button"
        onClick={() => (chosen.value = task_id === chosen.value ? null : task_id)}
        data-testid={`task-${task_id}`}
      >
        {task_id}
      </button>
    ),
  };
  const finished = [...now.over].reverse();
  return (
    <section class="panel" aria-label="Tasks" data-testid="panel-tasks">
      <div class="panel-head">
        <h2>Tasks</h2>
        <span class="count">
          {integer(now.counts["DONE"] ?? 0)} done, {integer(now.tasks.length + now.more_tasks)} open
        </span>
      </div>
      <DataTable
        caption="Open tasks"
        columns={live ? [name, ...others] : TASK_COLUMNS}
        rows={now.tasks}
        rowKey={({ task_id }) => task_id}
        current={({ task_id }) => task_id === chosen.value}
        empty="No open tasks."
        testId="tasks"
      />
      {live && task !== undefined && (
        <div data-testid="panel-task">
          <p>
            <strong data-testid="task-why">{reason?.sentence ?? `Task ${task.task_id} …`}</strong>
            {taskActions(task).length === 0 && ` The goods are on ${task.robot_id}, so the task stays with it.`}
          </p>
          {reason !== null && reason.because.length > 0 && (
            <ol class="truck-chain" aria-label="Reasons">
              {reason.because.map(({ sentence }) => (
                <li key={sentence}>{sentence}</li>
              ))}
            </ol>
          )}
          <Actions
            key={task.task_id}
            actions={taskActions(task)}
            target={{ taskId: task.task_id }}
            targetName="task"
            address={address}
            onDone={onDone}
          />
        </div>
      )}
      <details class="fold">
        <summary>Finished</summary>
        <DataTable
          caption="Finished tasks"
          columns={TASK_COLUMNS}
          rows={finished}
          rowKey={({ task_id, since }) => `${task_id} ${since}`}
          empty="None yet."
        />
      </details>
      {now.streams.length > 0 && (
        <p class="quiet">
          {now.streams
            .map(({ stream_id, open, most, made }) => `${stream_id}: ${open} of at most ${most} open, ${made} created`)
            .join("; ")}
        </p>
      )}
    </section>
  );
}

export function AlertTable({
  alerts,
  onChoose,
}: {
  readonly alerts: readonly AlertNow[];
  readonly onChoose: (robot: string) => void;
}) {
  const columns: Column<ListedAlert>[] = [
    { key: "time", title: "time", numeric: true, cell: ({ alert }) => fleetTime(alert.now) },
    {
      key: "code",
      title: "code",
      cell: ({ alert, isSerious }) => (
        <span class="nowrap">
          <code class="code-badge">{alert.code}</code>
          {isSerious && (
            <span class="alert-serious" aria-hidden="true">
              {" "}
              ▲
            </span>
          )}
        </span>
      ),
    },
    {
      key: "trucks",
      title: "trucks",
      cell: ({ alert }) =>
        alert.robot_ids.map((robot) => (
          <button key={robot} type="button" class="link-button nowrap" onClick={() => onChoose(robot)}>
            {robot}
          </button>
        )),
    },
    { key: "message", title: "message", wide: true, cell: ({ alert }) => alert.message },
  ];
  return (
    <section class="panel" aria-label="Alerts and incidents" data-testid="panel-alerts">
      <div class="panel-head">
        <h2>Alerts and incidents</h2>
      </div>
      {alerts.length === 0 ? (
        <p class="quiet">No alerts since this fleet was opened.</p>
      ) : (
        <>
          <DataTable
            caption="Alerts and incidents, newest first"
            columns={columns}
            rows={listAlerts(alerts)}
            rowKey={({ alert: { tick, code, robot_ids } }) => `${tick} ${code} ${robot_ids.join(" ")}`}
            empty=""
            testId="alerts"
          />
          <p class="quiet">▲ Incident, or alert above a notice; the incident buttons above go to these.</p>
        </>
      )}
    </section>
  );
}
