/** One scheduler: its description, tabs for its engines, and the page of the selected engine or of the whole scheduler. */

import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";

import { schedulerList } from "../api/server";
import type { SchedulerView } from "../api/types";
import { ErrorNote } from "../components/ErrorNote";
import { ExportMenu } from "../components/ExportMenu";
import { ReasonChain } from "../components/ReasonChain";
import type { LazyPage, SchedulerEntry } from "../registry";
import { entryOf } from "../registry";
import { schedulerHref } from "../route";
import { ClosedEngines } from "./ClosedEngines";
import { SchedulerHelp } from "./SchedulerHelp";

interface SchedulerRouteProps {
  readonly name: string;
  readonly engine: string | null;
  readonly at: number | null;
  readonly on: string | null;
}

export function SchedulerPage({ name, engine, at, on }: SchedulerRouteProps) {
  const list = schedulerList.value;
  if (list === null) return <p class="quiet">Loading the scheduler …</p>;
  const scheduler = list.schedulers.find((candidate) => candidate.name === name);
  if (scheduler === undefined) {
    return (
      <p class="note" data-testid="scheduler-missing">
        This server has no scheduler “{name}”. See the <a href="#/">overview</a>.
      </p>
    );
  }
  return (
    <>
      <div class="lead-row">
        <p class="lead">
          <SingleEngineName scheduler={scheduler} />
          {scheduler.sentence}
        </p>
        <div class="page-menus">
          <ExportMenu nameParts={[name, engine, at === null ? null : String(at)]} />
          <SchedulerHelp scheduler={name} />
        </div>
      </div>
      {scheduler.reason !== null && <ReasonChain reason={scheduler.reason} />}
      <ClosedEngines scheduler={name} />
      <SchedulerContent entry={entryOf(name)} scheduler={scheduler} engine={engine} at={at} on={on} />
    </>
  );
}

interface SchedulerContentProps {
  readonly entry: SchedulerEntry;
  readonly scheduler: SchedulerView;
  /** The engine or run in the URL; `null` is the first one. */
  readonly engine: string | null;
  readonly at: number | null;
  readonly on: string | null;
}

export function SchedulerContent({ entry, scheduler, engine, at, on }: SchedulerContentProps) {
  if (entry.shows === "runs") {
    return (
      <LazyContent
        key={scheduler.name}
        lazy={entry.page}
        draw={(Page) => <Page scheduler={scheduler} run={engine} at={at} on={on} />}
      />
    );
  }
  if (entry.shows === "whole") {
    if (engine !== null) return <NoEngine scheduler={scheduler} name={engine} />;
    return <LazyContent key={scheduler.name} lazy={entry.page} draw={(Page) => <Page scheduler={scheduler} />} />;
  }
  const chosen =
    scheduler.engines.find((candidate) => candidate.name === engine) ??
    (engine === null ? scheduler.engines[0] : undefined);
  return (
    <>
      {scheduler.engines.length > 1 && <EngineTabs scheduler={scheduler} chosen={chosen?.name ?? null} />}
      {chosen === undefined ? (
        <NoEngine scheduler={scheduler} name={engine} />
      ) : (
        <LazyContent
          key={`${scheduler.name}/${chosen.name}`}
          lazy={entry.page}
          draw={(Page) => <Page scheduler={scheduler} engine={chosen.name} at={at} on={on} />}
        />
      )}
    </>
  );
}

interface LazyContentProps<Props> {
  readonly lazy: LazyPage<Props>;
  readonly draw: (Page: ComponentType<Props>) => preact.ComponentChild;
}

function LazyContent<Props>({ lazy, draw }: LazyContentProps<Props>) {
  useEffect(() => {
    void lazy.load();
  }, [lazy]);
  if (lazy.page.value !== null) return draw(lazy.page.value);
  if (lazy.error.value !== null) return <ErrorNote error={lazy.error.value} />;
  return <p class="quiet">Loading the page of this scheduler …</p>;
}

/** The name of a single engine; several engines have tabs. */
function SingleEngineName({ scheduler }: { readonly scheduler: SchedulerView }) {
  const [only, ...others] = scheduler.engines;
  if (only === undefined || others.length > 0 || entryOf(scheduler.name).shows !== "engines") return null;
  return (
    <>
      <strong data-testid="engine-name">{only.name}</strong> ·{" "}
    </>
  );
}

function EngineTabs({ scheduler, chosen }: { readonly scheduler: SchedulerView; readonly chosen: string | null }) {
  return (
    <nav class="engine-tabs" aria-label="Engines of this scheduler" data-testid="engine-tabs">
      {scheduler.engines.map(({ name }) => (
        <a key={name} href={schedulerHref(scheduler.name, name)} aria-current={name === chosen ? "page" : undefined}>
          {name}
        </a>
      ))}
    </nav>
  );
}

function NoEngine({ scheduler, name }: { readonly scheduler: SchedulerView; readonly name: string | null }) {
  return (
    <p class="note" data-testid="engine-missing">
      {name === null ? "This scheduler has no engine yet." : `This scheduler has no engine “${name}”.`}{" "}
      <a href={name === null ? "#/" : schedulerHref(scheduler.name)}>
        {name === null ? "Back to the overview" : `Back to ${scheduler.title}`}
      </a>
    </p>
  );
}
