/** Help on a scheduler page, with links to the documentation served by the same server. */

import { helpFor } from "./help";

export function SchedulerHelp({ scheduler }: { readonly scheduler: string }) {
  const { sentences, pages } = helpFor(scheduler);
  return (
    <details class="page-menu" data-testid="help">
      <summary>Help</summary>
      <div class="page-menu-body">
        {sentences.map((sentence) => (
          <p key={sentence}>{sentence}</p>
        ))}
        <ul>
          {Object.entries(pages).map(([path, title]) => (
            <li key={path}>
              <a href={`/docs/${path}.html`}>{title}</a>
            </li>
          ))}
          <li>
            <a href="/docs/">All pages</a>
          </li>
        </ul>
      </div>
    </details>
  );
}
