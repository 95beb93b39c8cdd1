/** The sign-in form. The access token is sent once and not stored in the browser. */

import { useSignal } from "@preact/signals";

import type { ApiError } from "../api/client";
import { asApiError } from "../api/client";
import { signIn } from "../api/server";
import { ErrorNote } from "../components/ErrorNote";

export function SignIn() {
  const token = useSignal("");
  const busy = useSignal(false);
  const error = useSignal<ApiError | null>(null);

  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    busy.value = true;
    try {
      await signIn(token.value.trim());
    } catch (thrown) {
      error.value = asApiError(thrown);
    } finally {
      token.value = "";
      busy.value = false;
    }
  };

  return (
    <form class="panel sign-in" data-testid="sign-in" onSubmit={send}>
      <p>
        This server needs an access token. Create one with <code>pendula token new</code>.
      </p>
      <label for="token">Access token</label>
      <input
        id="token"
        type="password"
        required
        autocomplete="off"
        spellcheck={false}
        value={token.value}
        data-testid="token"
        onInput={(event) => (token.value = event.currentTarget.value)}
      />
      <button type="submit" class="button button-main" disabled={busy.value}>
        Sign in
      </button>
      {error.value !== null && <ErrorNote error={error.value} />}
    </form>
  );
}
