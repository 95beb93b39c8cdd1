/** The overview: items that need attention with links to their causes, and one card per scheduler with live figures. */

import { readiness, schedulerList } from "../../api/server";
import type { EngineView, SchedulerList, SchedulerView } from "../../api/types";
import { ReasonChain } from "../../components/ReasonChain";
import { StateDot } from "../../components/StateDot";
import { entryOf } from "../../registry";
import { schedulerHref } from "../../route";
import { counted, engineTime, integer } from "../../wording";
import type { Figure, Glance, Need } from "./glance";
import { brokenNeeds, countOf, failingChecks } from "./glance";
import { useGlances } from "./use_glances";

export function Home() {
  const list = schedulerList.value;
  const glances = useGlances(list).value;
  if (list === null) return <p class="quiet">Loading the schedulers …</p>;
  if (list.schedulers.length === 0) return <NoSchedulers />;
  return (
    <>
      <Needs needs={needsOf(list, glances)} />
      <ul class="cards" data-testid="scheduler-cards">
        {list.schedulers.map((scheduler) => (
          <SchedulerCard
            key={scheduler.name}
            scheduler={scheduler}
            figures={glances.get(scheduler.name)?.figures ?? []}
          />
        ))}
      </ul>
      <Checks />
    </>
  );
}

/** Items that need attention: broken engines first, then failing checks, then those of the schedulers; no duplicates. */
function needsOf(list: SchedulerList, glances: ReadonlyMap<string, Glance>): Need[] {
  const broken = list.schedulers.flatMap(brokenNeeds);
  const known = new Set(broken.map(({ href }) => href));
  const checks = readiness.value === null ? [] : failingChecks(readiness.value, list.schedulers);
  return [
    ...broken,
    ...checks.filter(({ href }) => !known.has(href)),
    ...list.schedulers.flatMap(({ name }) => glances.get(name)?.needs ?? []),
  ];
}

function NoSchedulers() {
  return (
    <p class="note" data-testid="no-schedulers">
      This server has no schedulers. Start it with <code>pendula serve --demo</code> to try them out.
    </p>
  );
}

function Needs({ needs }: { readonly needs: readonly Need[] }) {
  const resolved = needs.filter((item) => item.resolved);
  const count = countOf(needs);
  if (count === 0) {
    return (
      <div class="needs-empty" data-testid="needs">
        <p class="needs-none">
          <span aria-hidden="true">✓</span> Nothing needs attention.
        </p>
        <NeedList needs={resolved} />
      </div>
    );
  }
  return (
    <section class="panel needs" aria-labelledby="needs" data-testid="needs">
      <h2 id="needs">
        Needs attention <span class="count">{integer(count)}</span>
      </h2>
      <NeedList needs={needs.filter((item) => !item.resolved)} />
      <NeedList needs={resolved} />
    </section>
  );
}

function NeedList({ needs }: { readonly needs: readonly Need[] }) {
  if (needs.length === 0) return null;
  return (
    <ul class="need-list">
      {needs.map(({ key, sentence, href, resolved = false }) => (
        <li key={key} data-testid={resolved ? "news" : "need"} data-need={key}>
          <span class="need-sign" data-resolved={resolved} aria-hidden="true">
            {resolved ? "✓" : "▲"}
          </span>
          <a href={href}>{sentence}</a>
        </li>
      ))}
    </ul>
  );
}

interface SchedulerCardProps {
  readonly scheduler: SchedulerView;
  readonly figures: readonly Figure[];
}

function SchedulerCard({ scheduler, figures }: SchedulerCardProps) {
  const empty = scheduler.engines.length === 0 && entryOf(scheduler.name).shows === "engines";
  return (
    <li class="card" data-testid={`scheduler-card-${scheduler.name}`} data-state={scheduler.state}>
      <div class="card-head">
        <h2>
          <a href={schedulerHref(scheduler.name)}>{scheduler.title}</a>
        </h2>
        <StateDot state={scheduler.state} />
      </div>
      <p class="card-sentence">{scheduler.sentence}</p>
      {scheduler.reason !== null && <ReasonChain reason={scheduler.reason} />}
      {empty && <p class="quiet">No engine yet.</p>}
      {figures.length > 0 && <Figures figures={figures} />}
      {scheduler.engines.length > 0 && (
        <ul class="engines">
          {scheduler.engines.map((engine) => (
            <EngineLine key={engine.name} scheduler={scheduler.name} engine={engine} />
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

function EngineLine({ scheduler, engine }: { readonly scheduler: string; readonly engine: EngineView }) {
  return (
    <li data-testid={`engine-${scheduler}-${engine.name}`}>
      <a href={schedulerHref(scheduler, engine.name)}>{engine.name}</a>
      <span class="engine-numbers">
        {engineTime(engine.now, engine.time_unit)} · {counted(engine.commands, "command")}
      </span>
      {engine.broken !== null && <span class="engine-broken">▲ {engine.broken}</span>}
    </li>
  );
}

/** One line about readiness; failing checks are listed under "Needs attention". */
function Checks() {
  if (readiness.value === null) return null;
  const { status, checks } = readiness.value;
  const ready = status === "ready";
  return (
    <p class="quiet" data-testid="readiness" data-status={status}>
      <StateDot state={ready ? "ready" : "broken"} quiet />{" "}
      {ready
        ? `The server is ready: ${counted(checks.length, "check passes", "checks pass")}.`
        : "The server is not ready; see the failed checks above."}
    </p>
  );
}
