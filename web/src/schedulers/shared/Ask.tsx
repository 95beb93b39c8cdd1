/** Ask an engine why, as it is at the moment shown, and send it a command; what became of the command is shown. */

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
import type { CameRow, LiveEngine, Numbered } from "./engine";
import { recordOf } from "./engine";
import { WhyForm } from "./WhyForm";

type Askable = Pick<LiveEngine<Numbered>, "address" | "refresh" | "came">;

/** What a later event says of a command: whether it was refused after all, and a sentence. */
export interface Verdict {
  readonly refused: boolean;
  readonly sentence: string;
}

/** How a scheduler finds what became later of a command that was accepted; null where an event is about something else. */
export type ReadVerdict = (command: Json, event: JsonObject) => Verdict | null;

const NOTHING: ChoicesView = { questions: [], commands: [] };

interface AskProps {
  readonly live: Askable;
  /** The record looked at; `null` is live. */
  readonly at: number | null;
  readonly verdict?: ReadVerdict;
}

export function Ask({ live, at, verdict }: AskProps) {
  const past = at !== null;
  const choices = useSignal<ChoicesView | null>(null);
  // What can be asked changes with the engine: it is fetched when somebody turns to a form, and after each command.
  const fetch = async () => {
    try {
      choices.value = await api.choices(live.address, at);
    } catch {
      // Without choices both can still be written as JSON; what is wrong with the server is told elsewhere.
      choices.value ??= NOTHING;
    }
  };
  useEffect(() => void fetch(), [live.address, at]);
  return (
    <div class="scheduler-columns">
      <section class="panel" aria-labelledby="why" data-testid="panel-why">
        <h2 id="why">Why</h2>
        <WhyForm
          questions={choices.value?.questions ?? null}
          // An answer about another moment must not stay.
          key={at}
          hint={past ? "Shows every reason as of the moment shown." : "Shows every reason in order."}
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
            const done = await send(live, command, verdict);
            await fetch();
            return done;
          }}
        />
      </section>
    </div>
  );
}

function commandHint(past: boolean): string {
  if (!canCommand.value) return "Your role may look but not command.";
  return past ? "Go back to live to send commands: the past cannot be changed." : "Recorded before it takes effect.";
}

async function send(live: Askable, command: Json, verdict?: ReadVerdict): Promise<ComponentChildren> {
  try {
    const result = await api.command(live.address, command);
    return <Sent result={result} command={command} came={live.came} verdict={verdict} />;
  } catch (thrown) {
    // A refusal is an answer of the engine, not a failure of the call.
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

interface SentProps extends Pick<Askable, "came"> {
  readonly result: CommandResult;
  readonly command: Json;
  readonly verdict: ReadVerdict | undefined;
}

/** What became of a command: at once, and where it takes effect later, as soon as an event says so. */
export function Sent({ result: { n, events, answer, effect, complaints }, command, came, verdict }: SentProps) {
  const later = effect === "accepted" && verdict !== undefined ? laterVerdict(came.value, n, command, verdict) : null;
  const refused = effect === "refused" || later?.refused === true;
  const good = !refused && effect !== "none" && complaints.length === 0;
  return (
    <div
      class={`note ${good ? "note-done" : "note-refused"}`}
      data-testid={refused ? "refusal" : "command-done"}
      data-effect={later === null ? effect : later.refused ? "refused" : "done"}
      {...(complaints[0] === undefined ? {} : { "data-code": complaints[0].code })}
    >
      <p>{later?.sentence ?? inWords(effect, n, events.length)}</p>
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

function inWords(effect: CommandResult["effect"], n: number, events: number): string {
  switch (effect) {
    case "refused":
      return `Refused (record ${integer(n)}).`;
    case "none":
      return `No effect: nothing changed (record ${integer(n)}).`;
    case "accepted":
      return `Accepted as record ${integer(n)}; it takes effect when time advances.`;
    default:
      return `Done as record ${integer(n)} with ${counted(events, "event")}.`;
  }
}

/** The first event after a record that says what became of the command. */
function laterVerdict(rows: readonly CameRow[], n: number, command: Json, read: ReadVerdict): Verdict | null {
  // The newest come first.
  const found = rows.flatMap((row) => {
    const verdict = row.kind === "event" && recordOf(row.id) > n ? read(command, row.body) : null;
    return verdict === null ? [] : [verdict];
  });
  return found.at(-1) ?? null;
}
