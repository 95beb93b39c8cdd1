/** A row of key figures: name, value and unit; a value in alarm has a warning sign. */

import type { ComponentChildren } from "preact";

interface ReadoutProps {
  readonly name: string;
  readonly value: string;
  readonly unit?: string;
  readonly alarm?: boolean;
}

export function Readouts({ children }: { readonly children: ComponentChildren }) {
  return (
    <dl class="readouts" data-testid="readouts">
      {children}
    </dl>
  );
}

export function Readout({ name, value, unit = "", alarm = false }: ReadoutProps) {
  return (
    <div class="readout" data-alarm={alarm} data-testid={`readout-${name.replace(" ", "-")}`}>
      <dt>{name}</dt>
      <dd>
        {alarm && <span aria-hidden="true">▲ </span>}
        {value} {unit !== "" && <span class="unit">{unit}</span>}
      </dd>
    </div>
  );
}
