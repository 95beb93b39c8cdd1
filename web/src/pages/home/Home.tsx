/** The overview: what needs a person, one click from its cause; then one card a scheduler with its live figures. */

import { readiness, schedulerList } from "../../api/server";
import type { EngineView, SchedulerList, SchedulerView } from "../../api/types";
import { ReasonChain } from "../../components/ReasonChain";
import { StateDot } from "../../components/StateDot";
import { entryOf } from "../../registry";
import { schedulerHref } from "../../route";
import { counted, engineTime, integer } from "../../wording";
import type { Figure, Glance, Need } from "./glance";
import { brokenNeeds, countOf, failingChecks } from "./glance";
import { useGlances } from "./looking";

export function Home() {
  const list = schedulerList.value;
  const glances = useGlances(list).value;
  if (list === null) return <p class="quiet">Asking the server which schedulers there are …</p>;
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

/** All that needs a person: what is broken first, then what the schedulers tell, in their order; nothing twice. */
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
      No scheduler is served here yet: start the server with <code>pendula serve --demo</code> to see one at work.
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
      {empty && <p class="quiet">No engine runs in this scheduler.</p>}
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
