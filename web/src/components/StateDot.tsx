/** The state of a room in a word and a shape: colour alone would leave some readers out. */

import type { RoomState } from "../api/client";

const SIGNS: Record<RoomState, string> = { ready: "●", starting: "◐", broken: "▲" };

export function StateDot({ state, quiet = false }: { readonly state: RoomState; readonly quiet?: boolean }) {
  return (
    <span class="state-dot" data-state={state}>
      <span aria-hidden="true">{SIGNS[state] ?? "○"}</span> <span class={quiet ? "visually-hidden" : ""}>{state}</span>
    </span>
  );
}
