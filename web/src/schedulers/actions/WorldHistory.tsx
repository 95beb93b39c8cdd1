/** The history of a world: all events, those the player character learned of, or only problems. */

import { useSignal } from "@preact/signals";

import type { WorldNow } from "../../api/types";
import type { Column } from "../../components/DataTable";
import { DataTable } from "../../components/DataTable";
import { integer } from "../../wording";
import { recordOf } from "../shared/engine";
import type { Clock, WorldEvent } from "./model";
import { meta, minuteOf, paramsOf, words } from "./model";
import { eventSentence, toneOf } from "./sentences";

interface WorldHistoryProps {
  /** Oldest first. */
  readonly events: readonly WorldEvent[];
  readonly gaps: readonly string[];
  readonly now: WorldNow;
  readonly clock: Clock;
  readonly onShowRecord: (n: number) => void;
  readonly onChoose: (action: string) => void;
}

const FILTERS = [
  ["world", "All"],
  ["pc", "Player character"],
  ["problems", "Problems"],
] as const;
type Filter = (typeof FILTERS)[number][0];

const EMPTY: Readonly<Record<Filter, string>> = {
  world: "No events yet.",
  pc: "The player character has not seen any event yet.",
  problems: "No rejections or diagnostics.",
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
const MAX_SHOWN = 300;

export function WorldHistory(props: WorldHistoryProps) {
  const filter = useSignal<Filter>("world");
  const matching = props.events.filter((event) => matches(event, filter.value));
  const rows = matching.slice(-MAX_SHOWN).reverse();
  return (
    <section class="panel" aria-labelledby="history" data-testid="panel-history">
      <div class="panel-head">
        <h2 id="history">
          History <span class="count">{integer(matching.length)}</span>
        </h2>
        <div class="segmented" role="group" aria-label="Filter events">
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

function matches(event: WorldEvent, filter: Filter): boolean {
  switch (filter) {
    case "world":
      return true;
    case "pc":
      return event.pc;
    case "problems":
      return event.type === "rejection" || event.type === "diagnostic";
  }
}

function columns({ now, clock, onShowRecord, onChoose }: WorldHistoryProps): Column<WorldEvent>[] {
  return [
    {
      key: "time",
      title: "time",
      cell: (event) => (
        <button
          type="button"
          class="link-button nowrap"
          title="Show the world after this event"
          aria-label={`${clock.moment(minuteOf(event, now))}: show the world after this event`}
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
      cell: (event) => <EventText event={event} now={now} clock={clock} onChoose={onChoose} />,
    },
  ];
}

type EventTextProps = { readonly event: WorldEvent } & Pick<WorldHistoryProps, "now" | "clock" | "onChoose">;

function EventText({ event, now, clock, onChoose }: EventTextProps) {
  const { type, action_id, actor, verb, pc, body } = event;
  const code = body["code"];
  return (
    <span class="event-text" data-tone={toneOf(event)} data-type={type}>
      <span class="event-mark" aria-hidden="true">
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
        <span class="event-sentence">{eventSentence(event, now, clock)}</span>
        {type === "start" && paramsOf(meta(event)["params"]) !== "" && (
          <span class="quiet params" data-testid="params">
            {" "}
            ({paramsOf(meta(event)["params"])})
          </span>
        )}
        {pc && (
          <span class="seen" title="The player character learned of this">
            {" "}
            <span aria-hidden="true">●</span>
            <span class="visually-hidden">seen by the player character</span>
          </span>
        )}
      </span>
    </span>
  );
}
