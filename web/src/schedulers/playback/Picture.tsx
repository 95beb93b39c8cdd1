/** The picture of an item, generated from its payload. */

import { useMemo } from "preact/hooks";

import type { Shape } from "./picture";
import { bytesOf, HEIGHT, shapesOf, WIDTH } from "./picture";

interface PictureProps {
  readonly payload: string;
  readonly id: number | bigint;
  /** Text for screen readers; omit it where the text beside the picture is enough. */
  readonly title?: string;
}

export function Picture({ payload, id, title }: PictureProps) {
  const shapes = useMemo(() => shapesOf(bytesOf(payload, id)), [payload, id]);
  const label = title === undefined ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": title };
  return (
    <svg class="picture" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="xMidYMid slice" {...label}>
      {shapes.map((shape, index) => (
        <ShapeElement key={index} shape={shape} />
      ))}
    </svg>
  );
}

function ShapeElement({ shape: { kind, at, fill } }: { readonly shape: Shape }) {
  switch (kind) {
    case "rect":
      return <rect {...at} fill={fill} />;
    case "circle":
      return <circle {...at} fill={fill} />;
    case "path":
      return <path {...at} fill={fill} />;
  }
}
