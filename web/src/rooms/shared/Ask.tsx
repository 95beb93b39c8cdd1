/** Ask an engine why, and send it a command. Both speak to the engine as it is now, whatever moment is shown. */

import type { ComponentChildren } from "preact";

import { ApiError } from "../../api/client";
import type { Json } from "../../api/json";
import { inOneLine } from "../../api/json";
import { api, mayCommand } from "../../api/server";
import type { CommandResult } from "../../api/types";
import { Facts } from "../../components/Facts";
import { JsonForm } from "../../components/JsonForm";
import { ReasonChain } from "../../components/ReasonChain";
import { counted, integer } from "../../wording";
import type { LiveEngine, Numbered } from "./engine";

type Askable = Pick<LiveEngine<Numbered>, "address" | "lastCommand" | "refresh">;

interface AskProps {
  readonly live: Askable;
  readonly past: boolean;
}

export function Ask({ live, past }: AskProps) {
  return (
    <div class="room-columns">
      <section class="panel" aria-labelledby="why" data-testid="panel-why">
        <h2 id="why">Why</h2>
        <JsonForm
          label="Question"
          hint={
            past
              ? "The answer speaks of the engine as it is now, not of the moment shown."
              : "A question as JSON; the engine answers with its chain of reasons."
          }
          example={'{"about": "now"}'}
          button="Ask why"
          onSend={async (question) => <ReasonChain reason={await api.why(live.address, question)} />}
          testId="why-form"
        />
      </section>
      <section class="panel" aria-labelledby="command" data-testid="panel-command">
        <h2 id="command">Command</h2>
        <JsonForm
          label="Command"
          hint={commandHint(past)}
          example={live.lastCommand.value ?? '{"type": "…"}'}
          button="Send"
          disabled={past || !mayCommand.value}
          onSend={(command) => send(live, command)}
          testId="command-form"
        />
      </section>
    </div>
  );
}

function commandHint(past: boolean): string {
  if (!mayCommand.value) return "Your role may look but not command.";
  return past
    ? "Go back to live to send commands: the past cannot be changed."
    : "A command as JSON with its type; it is journalled before it takes effect.";
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
