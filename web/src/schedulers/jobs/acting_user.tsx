/** The name of the acting user: that of the token, or on a server without tokens the one typed in. */

import { signal } from "@preact/signals";

import { session } from "../../api/server";

export const typedName = signal("");

/** Whether the server has no tokens, so that the name has to be typed in. */
export function needsTypedName(): boolean {
  return session.value.kind === "open" && !session.value.session.tokens_required;
}

/** The name to send; `null` when the token has one. */
export function actingUser(): string | null {
  const name = typedName.value.trim();
  return needsTypedName() && name !== "" ? name : null;
}

export function NameField() {
  if (!needsTypedName()) return null;
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
