/** Ask an engine why, and send it a command. Both speak to the engine as it is now, whatever moment is shown. */

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";

import { ApiError } from "../../api/client";
import type { Json } from "../../api/json";
import { inOneLine } from "../../api/json";
import { api, mayCommand } from "../../api/server";
import type { ChoicesView, CommandResult } from "../../api/types";
import { Facts } from "../../components/Facts";
import { ReasonChain } from "../../components/ReasonChain";
import { counted, integer } from "../../wording";
import { CommandForm } from "./CommandForm";
import type { LiveEngine, Numbered } from "./engine";
import { WhyForm } from "./WhyForm";

type Askable = Pick<LiveEngine<Numbered>, "address" | "refresh">;

const NOTHING: ChoicesView = { questions: [], commands: [] };

interface AskProps {
  readonly live: Askable;
  readonly past: boolean;
}

export function Ask({ live, past }: AskProps) {
  const choices = useSignal<ChoicesView | null>(null);
  // What can be asked changes with the engine: it is fetched when somebody turns to a form, and after each command.
  const fetch = async () => {
    try {
      choices.value = await api.choices(live.address);
    } catch {
      // Without choices both can still be written as JSON; what is wrong with the server is told elsewhere.
      choices.value ??= NOTHING;
    }
  };
  useEffect(() => void fetch(), [live.address]);
  return (
    <div class="room-columns">
      <section class="panel" aria-labelledby="why" data-testid="panel-why">
        <h2 id="why">Why</h2>
        <WhyForm
          questions={choices.value?.questions ?? null}
          hint={
            past
              ? "The answer speaks of the engine as it is now, not of the moment shown."
              : "The engine answers with its chain of reasons."
          }
          onOpen={() => void fetch()}
          onAsk={async (question) => <ReasonChain reason={await api.why(live.address, question)} />}
        />
      </section>
      <section class="panel" aria-labelledby="command" data-testid="panel-command">
        <h2 id="command">Command</h2>
        <CommandForm
          forms={choices.value?.commands ?? null}
          hint={commandHint(past)}
          disabled={past || !mayCommand.value}
          onOpen={async () => {
            await fetch();
            return choices.value?.commands ?? [];
          }}
          onSend={async (command) => {
            const done = await send(live, command);
            await fetch();
            return done;
          }}
        />
      </section>
    </div>
  );
}

function commandHint(past: boolean): string {
  if (!mayCommand.value) return "Your role may look but not command.";
  return past
    ? "Go back to live to send commands: the past cannot be changed."
    : "It is journalled before it takes effect.";
}

async function send(live: Askable, command: Json): Promise<ComponentChildren> {
  try {
    const { n, events, answer } = await api.command(live.address, command);
    return <Done n={n} events={events} answer={answer} />;
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

function Done({ n, events, answer }: Pick<CommandResult, "n" | "events" | "answer">) {
  return (
    <div class="note note-done" data-testid="command-done">
      <p>
        Done as record {integer(n)} with {counted(events.length, "event")}.
      </p>
      {answer !== null && <Facts facts={{ answer: inOneLine(answer) }} />}
    </div>
  );
}
