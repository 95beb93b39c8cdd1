/** The overview: what needs a person, one click from its cause; then one card a room with its live figures. */

import { readiness, roomList } from "../../api/server";
import type { EngineView, RoomList, RoomView } from "../../api/types";
import { ReasonChain } from "../../components/ReasonChain";
import { StateDot } from "../../components/StateDot";
import { entryOf } from "../../registry";
import { roomHref } from "../../route";
import { counted, engineTime, integer } from "../../wording";
import type { Figure, Glance, Need } from "./glance";
import { brokenNeeds, countOf, failingChecks } from "./glance";
import { useGlances } from "./looking";

export function Home() {
  const list = roomList.value;
  const glances = useGlances(list).value;
  if (list === null) return <p class="quiet">Asking the server which rooms there are …</p>;
  if (list.rooms.length === 0) return <NoRooms />;
  return (
    <>
      <Needs needs={needsOf(list, glances)} />
      <ul class="cards" data-testid="room-cards">
        {list.rooms.map((room) => (
          <RoomCard key={room.name} room={room} figures={glances.get(room.name)?.figures ?? []} />
        ))}
      </ul>
      <Checks />
    </>
  );
}

/** All that needs a person: what is broken first, then what the rooms tell, in their order; nothing twice. */
function needsOf(list: RoomList, glances: ReadonlyMap<string, Glance>): Need[] {
  const broken = list.rooms.flatMap(brokenNeeds);
  const known = new Set(broken.map(({ href }) => href));
  const checks = readiness.value === null ? [] : failingChecks(readiness.value, list.rooms);
  return [
    ...broken,
    ...checks.filter(({ href }) => !known.has(href)),
    ...list.rooms.flatMap(({ name }) => glances.get(name)?.needs ?? []),
  ];
}

function NoRooms() {
  return (
    <p class="note" data-testid="no-rooms">
      No room is served here yet: start the server with <code>pendula serve --demo</code> to see one at work.
    </p>
  );
}

function Needs({ needs }: { readonly needs: readonly Need[] }) {
  const over = needs.filter((one) => one.over);
  const count = countOf(needs);
  if (count === 0) {
    return (
      <div class="needs-nobody" data-testid="needs">
        <p class="needs-none">
          <span aria-hidden="true">✓</span> Nothing needs a person.
        </p>
        <NeedList needs={over} />
      </div>
    );
  }
  return (
    <section class="panel needs" aria-labelledby="needs" data-testid="needs">
      <h2 id="needs">
        What needs a person <span class="count">{integer(count)}</span>
      </h2>
      <NeedList needs={needs.filter((one) => !one.over)} />
      <NeedList needs={over} />
    </section>
  );
}

function NeedList({ needs }: { readonly needs: readonly Need[] }) {
  if (needs.length === 0) return null;
  return (
    <ul class="need-list">
      {needs.map(({ key, sentence, href, over = false }) => (
        <li key={key} data-testid={over ? "news" : "need"} data-need={key}>
          <span class="need-sign" data-over={over} aria-hidden="true">
            {over ? "✓" : "▲"}
          </span>
          <a href={href}>{sentence}</a>
        </li>
      ))}
    </ul>
  );
}

interface RoomCardProps {
  readonly room: RoomView;
  readonly figures: readonly Figure[];
}

function RoomCard({ room, figures }: RoomCardProps) {
  const empty = room.engines.length === 0 && entryOf(room.name).shows === "engines";
  return (
    <li class="card" data-testid={`room-card-${room.name}`} data-state={room.state}>
      <div class="card-head">
        <h2>
          <a href={roomHref(room.name)}>{room.title}</a>
        </h2>
        <StateDot state={room.state} />
      </div>
      <p class="card-sentence">{room.sentence}</p>
      {room.reason !== null && <ReasonChain reason={room.reason} />}
      {empty && <p class="quiet">No engine runs in this room.</p>}
      {figures.length > 0 && <Figures figures={figures} />}
      {room.engines.length > 0 && (
        <ul class="engines">
          {room.engines.map((engine) => (
            <EngineLine key={engine.name} room={room.name} engine={engine} />
          ))}
        </ul>
      )}
    </li>
  );
}

function Figures({ figures }: { readonly figures: readonly Figure[] }) {
  return (
    <dl class="card-figures" data-testid="figures">
      {figures.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function EngineLine({ room, engine }: { readonly room: string; readonly engine: EngineView }) {
  return (
    <li data-testid={`engine-${room}-${engine.name}`}>
      <a href={roomHref(room, engine.name)}>{engine.name}</a>
      <span class="engine-numbers">
        {engineTime(engine.now, engine.time_unit)} · {counted(engine.commands, "command")}
      </span>
      {engine.broken !== null && <span class="engine-broken">▲ {engine.broken}</span>}
    </li>
  );
}

/** One line while all is well: the checks that fail are among what needs a person. */
function Checks() {
  if (readiness.value === null) return null;
  const { status, checks } = readiness.value;
  const ready = status === "ready";
  return (
    <p class="quiet" data-testid="readiness" data-status={status}>
      <StateDot state={ready ? "ready" : "broken"} quiet />{" "}
      {ready
        ? `The server is ready: ${counted(checks.length, "check holds", "checks hold")}.`
        : "The server is not ready; the failing checks are listed above."}
    </p>
  );
}
