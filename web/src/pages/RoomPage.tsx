/** One room: its sentence, its engines to choose from, and the page that shows the chosen one. */

import type { Room } from "../api/client";
import { roomList } from "../api/server";
import { ReasonChain } from "../components/ReasonChain";
import { pageOf } from "../registry";
import { roomHref } from "../route";

interface RoomRouteProps {
  readonly name: string;
  readonly engine: string | null;
  readonly at: number | null;
}

export function RoomPage({ name, engine, at }: RoomRouteProps) {
  const list = roomList.value;
  if (list === null) return <p class="quiet">Asking the server for this room …</p>;
  const room = list.rooms.find((candidate) => candidate.name === name);
  if (room === undefined) {
    return (
      <p class="note" data-testid="room-missing">
        There is no room “{name}” on this server. <a href="#/">The overview</a> lists those that are.
      </p>
    );
  }
  const chosen =
    room.engines.find((candidate) => candidate.name === engine) ?? (engine === null ? room.engines[0] : undefined);
  const Page = pageOf(name);
  return (
    <>
      <p class="lead">{room.sentence}</p>
      {room.reason !== null && <ReasonChain reason={room.reason} />}
      {room.engines.length > 1 && <EngineTabs room={room} chosen={chosen?.name ?? null} />}
      {chosen === undefined ? (
        <NoEngine room={room} asked={engine} />
      ) : (
        <Page key={`${name}/${chosen.name}`} room={room} engine={chosen.name} at={at} />
      )}
    </>
  );
}

function EngineTabs({ room, chosen }: { readonly room: Room; readonly chosen: string | null }) {
  return (
    <nav class="engine-tabs" aria-label="Engines of this room" data-testid="engine-tabs">
      {room.engines.map(({ name }) => (
        <a key={name} href={roomHref(room.name, name)} aria-current={name === chosen ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

function NoEngine({ room, asked }: { readonly room: Room; readonly asked: string | null }) {
  return (
    <p class="note" data-testid="engine-missing">
      {asked === null ? "No engine runs in this room yet." : `This room has no engine “${asked}”.`}{" "}
      <a href={asked === null ? "#/" : roomHref(room.name)}>
        {asked === null ? "Back to the overview" : `Back to ${room.title}`}
      </a>
    </p>
  );
}
