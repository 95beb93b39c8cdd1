/** An error as the server said it: code, message, facts and the request id, and a button that copies them all. */

import { useSignal } from "@preact/signals";

import type { ApiError } from "../api/client";
import { writeJson } from "../api/json";
import { Facts } from "./Facts";

export function ErrorNote({ error }: { readonly error: ApiError }) {
  return (
    <div class="note note-error" role="alert" data-testid="error-note" data-code={error.code}>
      <p>
        <code class="code-badge">{error.code}</code> {error.message}
      </p>
      <Facts facts={error.details} />
      <p class="note-foot">
        {error.requestId !== null && (
          <span>
            request <code data-testid="request-id">{error.requestId}</code>
          </span>
        )}
        <CopyButton text={copyText(error)} />
      </p>
    </div>
  );
}

function CopyButton({ text }: { readonly text: string }) {
  const said = useSignal("Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      said.value = "Copied";
    } catch {
      // Browsers forbid the clipboard outside secure contexts; the text above can still be selected.
      said.value = "Copying is not allowed here";
    }
  };
  return (
    <button type="button" class="button button-quiet" onClick={() => void copy()} aria-live="polite">
      {said}
    </button>
  );
}

function copyText(error: ApiError): string {
  const { code, message, status, details, requestId } = error;
  return writeJson({ code, message, status, details, request_id: requestId }, 2);
}
