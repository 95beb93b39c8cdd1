/** Who acts: what needs a named user takes the token's name, or on a server without tokens the one that is typed in. */

import { signal } from "@preact/signals";

import { session } from "../../api/server";

export const typedName = signal("");

/** Whether a name has to be typed in. */
export function isNameless(): boolean {
  return session.value.kind === "open" && !session.value.session.tokens_required;
}

/** The name to send; nothing where a token says it. */
export function actingAs(): string | null {
  const name = typedName.value.trim();
  return isNameless() && name !== "" ? name : null;
}

export function NameField() {
  if (!isNameless()) return null;
  return (
    <label>
      your name
      <input
        value={typedName.value}
        maxLength={128}
        autocomplete="name"
        onInput={({ currentTarget }) => {
          typedName.value = currentTarget.value;
        }}
        data-testid="your-name"
      />
    </label>
  );
}
