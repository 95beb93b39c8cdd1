/** A menu of the tables, pictures and state on the page, to save as files; filled when it opens. */

import { useSignal } from "@preact/signals";

import { asApiError } from "../api/client";
import type { Export } from "./exports";
import { exportsOf, fileName, save } from "./exports";

interface ExportMenuProps {
  /** The start of file names: scheduler, engine, moment. */
  readonly nameParts: readonly (string | null)[];
}

export function ExportMenu({ nameParts }: ExportMenuProps) {
  const items = useSignal<readonly Export[]>([]);
  const status = useSignal("");
  const refresh = () => {
    status.value = "";
    items.value = exportsOf(document.querySelector("main") ?? document);
  };
  const saveFile = async ({ kind, title, make }: Export) => {
    const name = fileName([...nameParts, title], kind);
    try {
      save({ name, blob: await make() });
      status.value = `Saved ${name}.`;
    } catch (thrown) {
      status.value = asApiError(thrown).message;
    }
  };
  return (
    <details class="page-menu" onToggle={({ currentTarget }) => currentTarget.open && refresh()} data-testid="export">
      <summary>Export</summary>
      <div class="page-menu-body">
        {items.value.length === 0 ? (
          <p class="quiet">Nothing to export yet.</p>
        ) : (
          <ul>
            {items.value.map((item, index) => (
              <li key={index}>
                <button
                  type="button"
                  class="link-button"
                  onClick={() => void saveFile(item)}
                  data-testid={`export-${item.kind}`}
                >
                  {item.title}
                </button>{" "}
                <span class="code-badge">{item.kind}</span>
              </li>
            ))}
          </ul>
        )}
        <p class="quiet" role="status">
          {status}
        </p>
      </div>
    </details>
  );
}
