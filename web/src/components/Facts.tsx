/** Named facts as a definition list; renders nothing when there are none. */

import type { JsonObject } from "../api/json";
import { inOneLine } from "../api/json";

export function Facts({ facts }: { readonly facts: JsonObject }) {
  const members = Object.entries(facts);
  if (members.length === 0) return null;
  return (
    <dl class="facts">
      {members.map(([name, value]) => (
        <div class="fact" key={name}>
          <dt>{name}</dt>
          <dd>{inOneLine(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
