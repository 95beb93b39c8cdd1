/** A server error: code, message, facts and request id, with a button that copies all of them. */

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
  const label = useSignal("Copy");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      label.value = "Copied";
    } catch {
      // Browsers block the clipboard outside secure contexts; the text above can still be selected.
      label.value = "Cannot copy on this page";
    }
  };
  return (
    <button type="button" class="button button-quiet" onClick={() => void copy()} aria-live="polite">
      {label}
    </button>
  );
}

function copyText(error: ApiError): string {
  const { code, message, status, details, requestId } = error;
  return writeJson({ code, message, status, details, request_id: requestId }, 2);
}
