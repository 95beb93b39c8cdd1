/** What is shown, to be saved: a list of what is on the page now, made when it is opened. */

import { useSignal } from "@preact/signals";

import { asApiError } from "../api/client";
import type { Export } from "./exports";
import { exportsOf, fileName, save } from "./exports";

interface ExportMenuProps {
  /** What the names of files begin with: scheduler, engine, moment. */
  readonly place: readonly (string | null)[];
}

export function ExportMenu({ place }: ExportMenuProps) {
  const found = useSignal<readonly Export[]>([]);
  const said = useSignal("");
  const look = () => {
    said.value = "";
    found.value = exportsOf(document.querySelector("main") ?? document);
  };
  const take = async ({ kind, title, make }: Export) => {
    const name = fileName([...place, title], kind);
    try {
      save({ name, blob: await make() });
      said.value = `${name} is saved.`;
    } catch (thrown) {
      said.value = asApiError(thrown).message;
    }
  };
  return (
    <details class="page-menu" onToggle={({ currentTarget }) => currentTarget.open && look()} data-testid="export">
      <summary>Export</summary>
      <div class="page-menu-body">
        {found.value.length === 0 ? (
          <p class="quiet">Nothing is shown yet.</p>
        ) : (
          <ul>
            {found.value.map((one, number) => (
              <li key={number}>
                <button
                  type="button"
                  class="link-button"
                  onClick={() => void take(one)}
                  data-testid={`export-${one.kind}`}
                >
                  {one.title}
                </button>{" "}
                <span class="code-badge">{one.kind}</span>
              </li>
            ))}
          </ul>
        )}
        <p class="quiet" role="status">
          {said}
        </p>
      </div>
    </details>
  );
}
