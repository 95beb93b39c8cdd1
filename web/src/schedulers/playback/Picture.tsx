/** The picture of an item, drawn from what it carries. */

import { useMemo } from "preact/hooks";

import type { Shape } from "./picture";
import { bytesOf, HEIGHT, shapesOf, WIDTH } from "./picture";

interface PictureProps {
  readonly payload: string;
  readonly id: number | bigint;
  /** What a reader hears; nothing where the words beside it say it all. */
  readonly title?: string;
}

export function Picture({ payload, id, title }: PictureProps) {
  const shapes = useMemo(() => shapesOf(bytesOf(payload, id)), [payload, id]);
  const named = title === undefined ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": title };
  return (
    <svg class="picture" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="xMidYMid slice" {...named}>
      {shapes.map((shape, place) => (
        <Drawn key={place} shape={shape} />
      ))}
    </svg>
  );
}

function Drawn({ shape: { kind, at, fill } }: { readonly shape: Shape }) {
  switch (kind) {
    case "rect":
      return <rect {...at} fill={fill} />;
    case "circle":
      return <circle {...at} fill={fill} />;
    case "path":
      return <path {...at} fill={fill} />;
  }
}
