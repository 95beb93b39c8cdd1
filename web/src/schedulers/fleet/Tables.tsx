/** The fleet as tables: trucks with their reasons, tasks, streams, and what somebody should look at. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type { EngineAddress } from "../../api/client";
import type { AlertNow, FleetNow, TaskNow, TruckNow } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { integer, timeSpan } from "../../wording";
import type { Listed } from "./alerts";
import { listed } from "./alerts";
import type { Deed } from "./Deeds";
import { Deeds } from "./Deeds";
import { useReason } from "./reason";
import { condition, errand, fleetTime, phase, speed } from "./wording";

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
      key: "is",
      title: "is",
      by: condition,
      cell: (truck) => <span data-condition={condition(truck)}>{condition(truck)}</span>,
    },
    { key: "why", title: "why", wide: true, cell: ({ sentence }) => sentence },
    { key: "phase", title: "task", by: phase, cell: Errand },
    { key: "speed", title: "speed", numeric: true, by: (truck) => truck.speed, cell: (truck) => speed(truck.speed) },
    {
      key: "wait",
      title: "waits",
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
        caption="Trucks, what they are about and why"
        columns={columns}
        rows={now.trucks}
        rowKey={({ robot_id }) => robot_id}
        current={({ robot_id }) => robot_id === chosen}
        empty="This fleet has no trucks."
        testId="trucks"
      />
      {children}
    </section>
  );
}

/** What a truck is about, on two lines at most. */
function Errand(truck: TruckNow) {
  return errand(truck).map((part) => (
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
    cell: ({ robot_id }) => robot_id ?? "nobody yet",
  },
  { key: "since", title: "since", numeric: true, by: ({ since }) => since, cell: ({ since }) => fleetTime(since) },
];

const HOLD: Deed = {
  type: "HOLD_TASK",
  title: "Hold",
  question: "This holds it: nobody begins it until it is resumed.",
};
const CANCEL: Deed = { type: "CANCEL_TASK", title: "Cancel", question: "This cancels it: nobody will do it any more." };

/** A task whose goods are on a truck stays with it, unless it is held. */
export function taskDeeds({ state, loaded, robot_id }: TaskNow): readonly Deed[] {
  if (state === "HELD") {
    return [
      { type: "RESUME_TASK", title: "Let it go on", question: "This lets it go on: it may be done again." },
      CANCEL,
    ];
  }
  if (loaded) return [];
  if (state === "WAITING" || state === "READY") return [HOLD, CANCEL];
  const question = `This takes it from ${robot_id ?? "its truck"}: another truck may have it.`;
  return [{ type: "WITHDRAW_TASK", title: "Take it from its truck", question }, HOLD, CANCEL];
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
  const over = [...now.over].reverse();
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
        empty="There is nothing to carry."
        testId="tasks"
      />
      {live && task !== undefined && (
        <div data-testid="panel-task">
          <p>
            <strong data-testid="task-why">{reason?.sentence ?? `Task ${task.task_id} …`}</strong>
            {taskDeeds(task).length === 0 && ` The goods are on ${task.robot_id}: it stays with its truck.`}
          </p>
          {reason !== null && reason.because.length > 0 && (
            <ol class="truck-chain" aria-label="What it waits for">
              {reason.because.map(({ sentence }) => (
                <li key={sentence}>{sentence}</li>
              ))}
            </ol>
          )}
          <Deeds
            key={task.task_id}
            deeds={taskDeeds(task)}
            about={{ taskId: task.task_id }}
            of="task"
            address={address}
            onDone={onDone}
          />
        </div>
      )}
      <details class="fold">
        <summary>Over</summary>
        <DataTable
          caption="Tasks that are over"
          columns={TASK_COLUMNS}
          rows={over}
          rowKey={({ task_id, since }) => `${task_id} ${since}`}
          empty="None yet."
        />
      </details>
      {now.streams.length > 0 && (
        <p class="quiet">
          {now.streams
            .map(({ stream_id, open, most, made }) => `${stream_id}: ${open} of at most ${most} open, ${made} made`)
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
  const columns: Column<Listed>[] = [
    { key: "at", title: "at", numeric: true, cell: ({ told }) => fleetTime(told.now) },
    {
      key: "what",
      title: "what",
      cell: ({ told, grave }) => (
        <span class="nowrap">
          <code class="code-badge">{told.code}</code>
          {grave && (
            <span class="alert-grave" aria-hidden="true">
              {" "}
              ▲
            </span>
          )}
        </span>
      ),
    },
    {
      key: "who",
      title: "who",
      cell: ({ told }) =>
        told.robot_ids.map((robot) => (
          <button key={robot} type="button" class="link-button nowrap" onClick={() => onChoose(robot)}>
            {robot}
          </button>
        )),
    },
    { key: "message", title: "message", wide: true, cell: ({ told }) => told.message },
  ];
  return (
    <section class="panel" aria-label="Alerts and incidents" data-testid="panel-alerts">
      <div class="panel-head">
        <h2>Alerts and incidents</h2>
      </div>
      {alerts.length === 0 ? (
        <p class="quiet">Nothing has gone wrong since this fleet was opened.</p>
      ) : (
        <>
          <DataTable
            caption="Alerts and incidents, the newest first"
            columns={columns}
            rows={listed(alerts)}
            rowKey={({ told: { tick, code, robot_ids } }) => `${tick} ${code} ${robot_ids.join(" ")}`}
            empty=""
            testId="alerts"
          />
          <p class="quiet">▲ An incident, or an alert that is more than a notice: the slider above goes to these.</p>
        </>
      )}
    </section>
  );
}
