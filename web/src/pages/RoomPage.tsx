/** One room: its sentence, its engines to choose from, and the page that shows the chosen one or the whole room. */

import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { roomList } from "../api/server";
import type { RoomView } from "../api/types";
import { ErrorNote } from "../components/ErrorNote";
import { ExportMenu } from "../components/ExportMenu";
import { ReasonChain } from "../components/ReasonChain";
import type { LazyPage, RoomEntry } from "../registry";
import { entryOf } from "../registry";
import { roomHref } from "../route";
import { ClosedEngines } from "./ClosedEngines";
import { RoomHelp } from "./RoomHelp";

interface RoomRouteProps {
  readonly name: string;
  readonly engine: string | null;
  readonly at: number | null;
  readonly on: string | null;
}

export function RoomPage({ name, engine, at, on }: RoomRouteProps) {
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
  return (
    <>
      <div class="lead-row">
        <p class="lead">
          <OnlyEngine room={room} />
          {room.sentence}
        </p>
        <div class="page-menus">
          <ExportMenu place={[name, engine, at === null ? null : String(at)]} />
          <RoomHelp room={name} />
        </div>
      </div>
      {room.reason !== null && <ReasonChain reason={room.reason} />}
      <ClosedEngines room={name} />
      <RoomContent entry={entryOf(name)} room={room} engine={engine} at={at} on={on} />
    </>
  );
}

interface RoomContentProps {
  readonly entry: RoomEntry;
  readonly room: RoomView;
  /** The engine or the run that the address names; `null` is the first one. */
  readonly engine: string | null;
  readonly at: number | null;
  readonly on: string | null;
}

export function RoomContent({ entry, room, engine, at, on }: RoomContentProps) {
  if (entry.shows === "runs") {
    return (
      <Fetched key={room.name} lazy={entry.page} draw={(Page) => <Page room={room} run={engine} at={at} on={on} />} />
    );
  }
  if (entry.shows === "whole") {
    if (engine !== null) return <NoEngine room={room} asked={engine} />;
    return <Fetched key={room.name} lazy={entry.page} draw={(Page) => <Page room={room} />} />;
  }
  const chosen =
    room.engines.find((candidate) => candidate.name === engine) ?? (engine === null ? room.engines[0] : undefined);
  return (
    <>
      {room.engines.length > 1 && <EngineTabs room={room} chosen={chosen?.name ?? null} />}
      {chosen === undefined ? (
        <NoEngine room={room} asked={engine} />
      ) : (
        <Fetched
          key={`${room.name}/${chosen.name}`}
          lazy={entry.page}
          draw={(Page) => <Page room={room} engine={chosen.name} at={at} on={on} />}
        />
      )}
    </>
  );
}

interface FetchedProps<Props> {
  readonly lazy: LazyPage<Props>;
  readonly draw: (Page: ComponentType<Props>) => preact.ComponentChild;
}

function Fetched<Props>({ lazy, draw }: FetchedProps<Props>) {
  useEffect(() => {
    void lazy.load();
  }, [lazy]);
  if (lazy.page.value !== null) return draw(lazy.page.value);
  if (lazy.error.value !== null) return <ErrorNote error={lazy.error.value} />;
  return <p class="quiet">Fetching the page of this room …</p>;
}

/** The name of the one engine that a page shows; several have tabs. */
function OnlyEngine({ room }: { readonly room: RoomView }) {
  const [only, ...others] = room.engines;
  if (only === undefined || others.length > 0 || entryOf(room.name).shows !== "engines") return null;
  return (
    <>
      <strong data-testid="engine-name">{only.name}</strong> ·{" "}
    </>
  );
}

function EngineTabs({ room, chosen }: { readonly room: RoomView; readonly chosen: string | null }) {
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

function NoEngine({ room, asked }: { readonly room: RoomView; readonly asked: string | null }) {
  return (
    <p class="note" data-testid="engine-missing">
      {asked === null ? "No engine runs in this room yet." : `This room has no engine “${asked}”.`}{" "}
      <a href={asked === null ? "#/" : roomHref(room.name)}>
        {asked === null ? "Back to the overview" : `Back to ${room.title}`}
      </a>
    </p>
  );
}
