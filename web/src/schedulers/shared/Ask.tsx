/** Why-questions to an engine about the moment shown, and commands with their results. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { ApiError } from "../../api/client";
import type { Json, JsonObject } from "../../api/json";
import { inOneLine } from "../../api/json";
import { api, canCommand } from "../../api/server";
import type { ChoicesView, CommandResult } from "../../api/types";
import { Facts } from "../../components/Facts";
import { ReasonChain } from "../../components/ReasonChain";
import { counted, integer } from "../../wording";
import { CommandForm } from "./CommandForm";
import type { EventRow, LiveEngine, Numbered } from "./engine";
import { recordOf } from "./engine";
import { WhyForm } from "./WhyForm";

type Askable = Pick<LiveEngine<Numbered>, "address" | "refresh" | "events">;

/** The outcome of a submitted command as given by a later event. */
export interface Verdict {
  readonly refused: boolean;
  readonly sentence: string;
}

/** Read the outcome of a submitted command from an event; `null` if the event is about something else. */
export type ReadVerdict = (command: Json, event: JsonObject) => Verdict | null;

const NO_CHOICES: ChoicesView = { questions: [], commands: [] };

interface AskProps {
  readonly live: Askable;
  /** The record shown; `null` is live. */
  readonly at: number | null;
  readonly verdict?: ReadVerdict;
}

export function Ask({ live, at, verdict }: AskProps) {
  const past = at !== null;
  const choices = useSignal<ChoicesView | null>(null);
  // The choices change with the engine; they are fetched when a form gets the focus, and after each command.
  const fetch = async () => {
    try {
      choices.value = await api.choices(live.address, at);
    } catch {
      // The JSON forms still work without choices; the error is shown elsewhere on the page.
      choices.value ??= NO_CHOICES;
    }
  };
  useEffect(() => void fetch(), [live.address, at]);
  return (
    <div class="scheduler-columns">
      <section class="panel" aria-labelledby="why" data-testid="panel-why">
        <h2 id="why">Why</h2>
        <WhyForm
          questions={choices.value?.questions ?? null}
          // An answer about another moment is dropped.
          key={at}
          hint={past ? "Shows every reason as of this moment." : "Shows every reason in order."}
          onOpen={() => void fetch()}
          onAsk={async (question) => <ReasonChain reason={await api.why(live.address, question, at)} />}
        />
      </section>
      <section class="panel" aria-labelledby="command" data-testid="panel-command">
        <h2 id="command">Command</h2>
        <CommandForm
          forms={choices.value?.commands ?? null}
          hint={commandHint(past)}
          disabled={past || !canCommand.value}
          onOpen={async () => {
            await fetch();
            return choices.value?.commands ?? [];
          }}
          onSend={async (command) => {
            const result = await send(live, command, verdict);
            await fetch();
            return result;
          }}
        />
      </section>
    </div>
  );
}

function commandHint(past: boolean): string {
  if (!canCommand.value) return "Read-only: needs the operator role.";
  return past ? "Go back to live to send commands." : "Recorded before it runs.";
}

async function send(live: Askable, command: Json, verdict?: ReadVerdict): Promise<ComponentChildren> {
  try {
    const result = await api.command(live.address, command);
    return <Result result={result} command={command} events={live.events} verdict={verdict} />;
  } catch (thrown) {
    // A refusal is the engine's response, not a failed request.
    if (thrown instanceof ApiError && thrown.status === 409) return <Refused refusal={thrown} />;
    throw thrown;
  } finally {
    void live.refresh();
  }
}

function Refused({ refusal: { code, message, details } }: { readonly refusal: ApiError }) {
  return (
    <div class="note note-refused" data-testid="refusal" data-code={code}>
      <p>
        Refused: <code class="code-badge">{code}</code> {message}
      </p>
      <Facts facts={details} />
    </div>
  );
}

interface ResultProps extends Pick<Askable, "events"> {
  readonly result: CommandResult;
  readonly command: Json;
  readonly verdict: ReadVerdict | undefined;
}

/** The result of a command; for one that takes effect later, the verdict of the first event about it. */
export function Result({ result, command, events, verdict }: ResultProps) {
  const { n, answer, effect, complaints } = result;
  const later = effect === "accepted" && verdict !== undefined ? laterVerdict(events.value, n, command, verdict) : null;
  const refused = effect === "refused" || later?.refused === true;
  const good = !refused && effect !== "none" && complaints.length === 0;
  return (
    <div
      class={`note ${good ? "note-done" : "note-refused"}`}
      data-testid={refused ? "refusal" : "command-done"}
      data-effect={later === null ? effect : later.refused ? "refused" : "done"}
      {...(complaints[0] === undefined ? {} : { "data-code": complaints[0].code })}
    >
      <p>{later?.sentence ?? summary(effect, n, result.events.length)}</p>
      {complaints.map(({ code, message }) => (
        <p key={message}>
          {effect !== "refused" && "Refused: "}
          <code class="code-badge">{code}</code> {message}
        </p>
      ))}
      {effect === "done" && answer !== null && <Facts facts={{ answer: inOneLine(answer) }} />}
    </div>
  );
}

function summary(effect: CommandResult["effect"], n: number, events: number): string {
  switch (effect) {
    case "refused":
      return `Refused (record ${integer(n)}).`;
    case "none":
      return `No effect (record ${integer(n)}).`;
    case "accepted":
      return `Submitted (record ${integer(n)}); takes effect when time advances.`;
    default:
      return `Done (record ${integer(n)}, ${counted(events, "event")}).`;
  }
}

/** The verdict of the first event after a record that has one. */
function laterVerdict(rows: readonly EventRow[], n: number, command: Json, read: ReadVerdict): Verdict | null {
  // Rows are newest first.
  const verdicts = rows.flatMap((row) => {
    const verdict = row.kind === "event" && recordOf(row.id) > n ? read(command, row.body) : null;
    return verdict === null ? [] : [verdict];
  });
  return verdicts.at(-1) ?? null;
}
