/** The overview: one card a room, and what the server says of itself. */

import { readiness, roomList } from "../api/server";
import type { Check, EngineView, Readiness, RoomList, RoomView } from "../api/types";
import { ReasonChain } from "../components/ReasonChain";
import { StateDot } from "../components/StateDot";
import { entryOf } from "../registry";
import { roomHref } from "../route";
import { counted, integer } from "../wording";

export function Home() {
  const list = roomList.value;
  if (list === null) return <p class="quiet">Asking the server which rooms there are …</p>;
  return (
    <>
      {list.rooms.length === 0 ? <NoRooms /> : <Cards list={list} />}
      {readiness.value !== null && <ReadinessPanel readiness={readiness.value} />}
    </>
  );
}

function NoRooms() {
  return (
    <p class="note" data-testid="no-rooms">
      No room is served here yet: start the server with <code>pendula serve --demo</code> to see one at work.
    </p>
  );
}

function Cards({ list }: { readonly list: RoomList }) {
  return (
    <ul class="cards" data-testid="room-cards">
      {list.rooms.map((room) => (
        <RoomCard key={room.name} room={room} />
      ))}
    </ul>
  );
}

function RoomCard({ room }: { readonly room: RoomView }) {
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
      {room.engines.length === 0 && entryOf(room.name).shows === "engines" && (
        <p class="quiet">No engine runs in this room.</p>
      )}
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

function EngineLine({ room, engine }: { readonly room: string; readonly engine: EngineView }) {
  return (
    <li data-testid={`engine-${room}-${engine.name}`}>
      <a href={roomHref(room, engine.name)}>{engine.name}</a>
      <span class="engine-numbers">
        {integer(engine.now)} {engine.time_unit} · {counted(engine.commands, "command")}
      </span>
      {engine.broken !== null && <span class="engine-broken">▲ {engine.broken}</span>}
    </li>
  );
}

function ReadinessPanel({ readiness: { status, checks } }: { readonly readiness: Readiness }) {
  const ready = status === "ready";
  return (
    <section class="panel" aria-labelledby="readiness" data-testid="readiness" data-status={status}>
      <h2 id="readiness">Readiness</h2>
      <p>
        <StateDot state={ready ? "ready" : "broken"} quiet />{" "}
        {ready ? "The server is ready." : "The server is not ready; the failing checks say why."}
      </p>
      <ul class="checks">
        {checks.map((check) => (
          <CheckLine key={check.name} check={check} />
        ))}
      </ul>
    </section>
  );
}

function CheckLine({ check: { name, ok, reason } }: { readonly check: Check }) {
  return (
    <li data-testid={`check-${name}`} data-ok={ok}>
      <span class="check-sign" aria-hidden="true">
        {ok ? "✓" : "✗"}
      </span>
      <span class="check-name">{name}</span>
      <span class="visually-hidden">{ok ? "holds" : "fails"}</span>
      {reason !== null && <span class="check-reason">{reason}</span>}
    </li>
  );
}
