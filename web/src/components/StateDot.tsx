/** The state of a scheduler as a word and a shape, since colour alone is not accessible. */

import type { State } from "../api/types";

const SIGNS: Record<State, string> = { ready: "●", starting: "◐", broken: "▲" };

export function StateDot({ state, quiet = false }: { readonly state: State; readonly quiet?: boolean }) {
  return (
    <span class="state-dot" data-state={state}>
      <span aria-hidden="true">{SIGNS[state] ?? "○"}</span> <span class={quiet ? "visually-hidden" : ""}>{state}</span>
    </span>
  );
}
