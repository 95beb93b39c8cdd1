/** What came before: the events of the world, or those the player character learned of; trouble is marked. */

import { useSignal } from "@preact/signals";

import type { WorldNow } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { integer } from "../../wording";
import { recordOf } from "../shared/engine";
import type { Clock, WorldEvent } from "./model";
import { meta, minuteOf, paramsOf, words } from "./model";
import { told, toneOf } from "./sentences";

interface HappenedProps {
  /** Oldest first. */
  readonly events: readonly WorldEvent[];
  readonly gaps: readonly string[];
  readonly now: WorldNow;
  readonly clock: Clock;
  readonly onShowRecord: (n: number) => void;
  readonly onChoose: (action: string) => void;
}

const FILTERS = [
  ["world", "the world"],
  ["pc", "player character"],
  ["trouble", "trouble"],
] as const;
type Filter = (typeof FILTERS)[number][0];

const EMPTY: Readonly<Record<Filter, string>> = {
  world: "Nothing has happened yet. Events appear here as they come.",
  pc: "The player character has not learned of anything yet.",
  trouble: "Nothing was rejected, refused or ignored.",
};
const MARKS: Readonly<Record<string, string>> = {
  start: "▸",
  end: "■",
  interrupt: "▲",
  visibility_change: "◆",
  rejection: "✕",
  diagnostic: "!",
  epoch: "☼",
};
const SHOWN_MOST = 300;

export function Happened(props: HappenedProps) {
  const filter = useSignal<Filter>("world");
  const found = props.events.filter((event) => belongs(event, filter.value));
  const rows = found.slice(-SHOWN_MOST).reverse();
  return (
    <section class="panel" aria-labelledby="happened" data-testid="panel-happened">
      <div class="panel-head">
        <h2 id="happened">
          What came before <span class="count">{integer(found.length)}</span>
        </h2>
        <div class="segmented" role="group" aria-label="Whose events">
          {FILTERS.map(([name, title]) => (
            <button
              key={name}
              type="button"
              aria-pressed={filter.value === name}
              onClick={() => (filter.value = name)}
              data-testid={`filter-${name}`}
            >
              {title}
            </button>
          ))}
        </div>
      </div>
      {props.gaps.map((sentence) => (
        <p key={sentence} class="note note-refused" data-testid="gap">
          {sentence}
        </p>
      ))}
      <DataTable
        caption="Events, newest first"
        columns={columns(props)}
        rows={rows}
        rowKey={({ id }) => id}
        empty={EMPTY[filter.value]}
        testId="events"
      />
    </section>
  );
}

function belongs(event: WorldEvent, filter: Filter): boolean {
  switch (filter) {
    case "world":
      return true;
    case "pc":
      return event.pc;
    case "trouble":
      return event.type === "rejection" || event.type === "diagnostic";
  }
}

function columns({ now, clock, onShowRecord, onChoose }: HappenedProps): Column<WorldEvent>[] {
  return [
    {
      key: "time",
      title: "time",
      cell: (event) => (
        <button
          type="button"
          class="link-button nowrap"
          title="Look at the world after this"
          aria-label={`${clock.moment(minuteOf(event, now))}: look at the world after this`}
          onClick={() => onShowRecord(recordOf(event.id))}
        >
          {clock.moment(minuteOf(event, now))}
        </button>
      ),
    },
    {
      key: "what",
      title: "event",
      wide: true,
      cell: (event) => <What event={event} now={now} clock={clock} onChoose={onChoose} />,
    },
  ];
}

type WhatProps = { readonly event: WorldEvent } & Pick<HappenedProps, "now" | "clock" | "onChoose">;

function What({ event, now, clock, onChoose }: WhatProps) {
  const { type, action_id, actor, verb, pc, body } = event;
  const code = body["code"];
  return (
    <span class="what" data-tone={toneOf(event)} data-type={type}>
      <span class="what-mark" aria-hidden="true">
        {MARKS[type] ?? "·"}
      </span>
      <span>
        {action_id !== null && (
          <>
            <button type="button" class="link-button" onClick={() => onChoose(action_id)}>
              {action_id}
            </button>{" "}
          </>
        )}
        {actor !== null && verb !== null && (
          <span class="quiet">
            {actor}, {words(verb)}:{" "}
          </span>
        )}
        {typeof code === "string" && (
          <>
            <code class="code-badge">{code}</code>{" "}
          </>
        )}
        <span class="what-told">{told(event, now, clock)}</span>
        {type === "start" && paramsOf(meta(event)["params"]) !== "" && (
          <span class="quiet params" data-testid="params">
            {" "}
            ({paramsOf(meta(event)["params"])})
          </span>
        )}
        {pc && (
          <span class="seen" title="The player character learned of it">
            {" "}
            <span aria-hidden="true">●</span>
            <span class="visually-hidden">seen by the player character</span>
          </span>
        )}
      </span>
    </span>
  );
}
