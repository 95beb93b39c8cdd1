/** A strip of next or previous items; selecting one explains why it was chosen. */

import type { ItemView } from "../../api/types";
import { integer } from "../../wording";
import { channelOf, keyOf, originOf } from "./model";
import { Picture } from "./Picture";

interface StripProps {
  readonly name: string;
  readonly title: string;
  readonly items: readonly ItemView[];
  readonly empty: string;
  readonly chosen: string | null;
  readonly onChoose: (item: ItemView) => void;
}

export function Strip({ name, title, items, empty, chosen, onChoose }: StripProps) {
  return (
    <section class="panel" aria-labelledby={`strip-${name}`} data-testid={`panel-${name}`}>
      <h2 id={`strip-${name}`}>
        {title} <span class="count">{integer(items.length)}</span>
      </h2>
      {items.length === 0 ? (
        <p class="quiet">{empty}</p>
      ) : (
        <ol class="strip" data-testid={name} tabIndex={0} aria-label={title}>
          {items.map((item) => (
            <li key={keyOf(item)}>
              <button
                type="button"
                class="thumb"
                aria-pressed={keyOf(item) === chosen}
                title={`${originOf(item)}: show why`}
                onClick={() => onChoose(item)}
                data-origin={item.origin}
                data-ordinal={item.ordinal}
              >
                <Picture payload={item.payload} id={item.id} />
                <span class="thumb-channel">{channelOf(item)}</span>
                <span class="thumb-id">{String(item.id)}</span>
              </button>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
