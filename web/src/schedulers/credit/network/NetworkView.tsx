/** The network graph: colour by position, width by use, highlights for events. Mouse and arrow keys select a participant,
 * which is described below the graph; the same data is available as tables. */

import type { ReadonlySignal } from "@preact/signals";
import { useComputed, useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef } from "preact/hooks";

import { useDarkScheme } from "../../../canvas/colour_scheme";
import { resizeCanvas, useWidth } from "../../../canvas/context";
import { paletteOf } from "../../../canvas/palette";
import { theme } from "../../../theme";
import { counted } from "../../../wording";
import { amount } from "../wording";
import type { Highlight } from "./highlights";
import type { Positions } from "./layout";
import { positionsOf } from "./layout";
import type { Network, Selection } from "./model";
import { formatSelection, nameOf, usedShare } from "./model";
import { NetworkTables } from "./NetworkTables";
import type { Scene, Size } from "./paint";
import { nodeAt, paintHighlights, paintNetwork } from "./paint";

interface NetworkViewProps {
  /** The scenario; positions are cached by it. */
  readonly name: string;
  readonly network: Network;
  readonly highlights: ReadonlySignal<readonly Highlight[]>;
  readonly chosen: Selection;
  readonly onChoose: (chosen: Selection) => void;
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function NetworkView({ name, network, highlights, chosen, onChoose }: NetworkViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const pointed = useSignal<string | null>(null);
  const dark = useDarkScheme();
  const id = useId();
  const positions = positionsOf(`${name} ${network.equivalent}`, network);
  const size = useMemo(() => sizeFor(width.value), [width.value]);
  const shown: Selection = pointed.value === null ? chosen : { kind: "node", id: pointed.value };
  const order = useMemo(() => readingOrder(network, positions), [positions, network.nodes.size]);

  useLayoutEffect(() => {
    const context = resizeCanvas(canvas.current, size);
    if (context === null || frame.current === null) return;
    paintNetwork(context, { network, positions, size, chosen: shown }, paletteOf(frame.current));
  }, [network, positions, size, selectionKey(shown), theme.value, dark.value]);

  const onKey = (event: KeyboardEvent) => {
    const next = nextNode(order, chosen, event.key);
    if (next === undefined) return;
    event.preventDefault();
    onChoose(next === null ? null : { kind: "node", id: next });
  };

  return (
    <section class="panel credit-network" aria-labelledby={`${id}title`} data-testid="panel-network">
      <div class="panel-head">
        <h2 id={`${id}title`}>Network</h2>
        <span class="count">
          {counted(network.nodes.size, "participant")}, {counted(network.links.size, "line")}, in {network.equivalent}
        </span>
      </div>
      <div
        ref={frame}
        class="network-frame"
        tabIndex={0}
        role="group"
        aria-label="Network graph. Arrow keys select a participant, Escape clears the selection. Tables follow."
        aria-describedby={`${id}status`}
        onKeyDown={onKey}
        data-testid="network"
      >
        <canvas ref={canvas} aria-hidden="true" />
        <Highlights scene={{ network, positions, size, chosen }} highlights={highlights} frame={frame} />
        <div
          class="network-touch"
          aria-hidden="true"
          style={{ height: `${size.height}px` }}
          onPointerMove={(event) =>
            (pointed.value = nodeAt({ network, positions, size }, event.offsetX, event.offsetY))
          }
          onPointerLeave={() => (pointed.value = null)}
          onClick={(event) => {
            const hit = nodeAt({ network, positions, size }, event.offsetX, event.offsetY);
            onChoose(hit === null ? null : { kind: "node", id: hit });
          }}
        />
      </div>
      <p class="network-status" id={`${id}status`} aria-live="polite" data-testid="network-status">
        {shown === null ? <Legend /> : sentenceOf(network, shown)}
      </p>
      <NetworkTables network={network} chosen={chosen} onChoose={onChoose} />
    </section>
  );
}

interface HighlightsProps {
  readonly scene: Scene;
  readonly highlights: ReadonlySignal<readonly Highlight[]>;
  readonly frame: RefObject<HTMLDivElement | null>;
}

/** Highlights are animated on their own canvas, so that the network is not redrawn for each frame. */
function Highlights({ scene, highlights, frame }: HighlightsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(scene);
  latest.current = scene;
  const { width, height } = scene.size;
  const count = useComputed(() => highlights.value.length);
  useEffect(() => {
    const context = resizeCanvas(canvas.current, { width, height });
    if (context === null || frame.current === null) return;
    const colours = paletteOf(frame.current);
    const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let frameId = 0;
    const paint = () => {
      const isActive = paintHighlights(
        context,
        latest.current,
        highlights.value,
        performance.now(),
        colours,
        reducedMotion,
      );
      frameId = isActive ? requestAnimationFrame(paint) : 0;
    };
    paint();
    return () => cancelAnimationFrame(frameId);
  }, [width, height, highlights.value, count.value, theme.value]);
  return <canvas ref={canvas} class="network-highlights" aria-hidden="true" />;
}

function Legend() {
  return (
    <span class="legend">
      <span class="legend-item">
        <span class="net-swatch" data-kind="owed" aria-hidden="true" /> is owed
      </span>
      <span class="legend-item">
        <span class="net-swatch" data-kind="owes" aria-hidden="true" /> owes
      </span>
      <span class="legend-item">○ person, □ business, ◇ hub</span>
      <span class="legend-item">
        <span class="net-line" data-kind="used" aria-hidden="true" /> wider: more used
      </span>
      <span class="legend-item">
        <span class="net-line" data-kind="full" aria-hidden="true" /> full
      </span>
      <span class="legend-item">
        <span class="net-line" data-kind="payment" aria-hidden="true" /> payment
      </span>
      <span class="legend-item">
        <span class="net-line" data-kind="clearing" aria-hidden="true" /> clearing
      </span>
      <span class="legend-item">
        <span class="net-line" data-kind="refusal" aria-hidden="true" /> refused here
      </span>
    </span>
  );
}

/** The description of the selection. */
export function sentenceOf(network: Network, chosen: NonNullable<Selection>): string {
  const { equivalent } = network;
  if (chosen.kind === "line") {
    const link = network.links.get(`${chosen.from}\u0000${chosen.to}`);
    const [creditor, debtor] = [nameOf(network, chosen.from), nameOf(network, chosen.to)];
    if (link === undefined) return `${creditor} has no line to ${debtor} now.`;
    const percent = Math.round(100 * usedShare(link));
    return `${creditor} trusts ${debtor} up to ${amount(link.trust_limit)} ${equivalent}; ${amount(link.used)} owed (${percent} %), ${amount(link.available)} left.`;
  }
  const node = network.nodes.get(chosen.id);
  if (node === undefined) return `${chosen.id} is no longer in the network.`;
  const lines = [...network.links.values()];
  const trusted = lines.filter(({ target }) => target === chosen.id);
  const trusts = lines.filter(({ source }) => source === chosen.id);
  const full = trusted.filter((link) => usedShare(link) >= 1).length;
  const position =
    node.net_sign === 0
      ? "has a net position of zero"
      : node.net_sign > 0
        ? `is owed ${amount(node.net_balance)} ${equivalent} net`
        : `owes ${amount(node.net_balance.replace("-", ""))} ${equivalent} net`;
  const status = node.status === "active" ? "" : `, ${node.status}`;
  const participant = `${nameOf(network, chosen.id)} (${node.type}${status})`;
  return `${participant} ${position}. Trusted by ${trusted.length}${fullLines(full)}, trusts ${trusts.length}.`;
}

function fullLines(count: number): string {
  return count === 0 ? "" : ` (${count} ${count === 1 ? "line" : "lines"} full)`;
}

function sizeFor(width: number): Size {
  return { width, height: Math.round(Math.min(560, Math.max(300, width * (width < 560 ? 0.95 : 0.66)))) };
}

/** Participants from top to bottom and left to right, for the arrow keys. */
export function readingOrder(network: Network, positions: Positions): string[] {
  const row = (id: string) => Math.floor(10 * (positions.get(id)?.y ?? 0));
  const across = (id: string) => positions.get(id)?.x ?? 0;
  return [...network.nodes.keys()].sort((a, b) => row(a) - row(b) || across(a) - across(b) || (a < b ? -1 : 1));
}

/** The selected participant after a key; `null` clears the selection, `undefined` is an unrelated key. */
export function nextNode(order: readonly string[], chosen: Selection, key: string): string | null | undefined {
  if (key === "Escape") return null;
  if (key === "Home") return order[0] ?? null;
  if (key === "End") return order.at(-1) ?? null;
  const step = STEPS[key];
  if (step === undefined || order.length === 0) return undefined;
  const index = chosen?.kind === "node" ? order.indexOf(chosen.id) : -1;
  if (index < 0) return (step > 0 ? order[0] : order.at(-1)) ?? null;
  return order[(index + step + order.length) % order.length] ?? null;
}

function selectionKey(chosen: Selection): string {
  return formatSelection(chosen) ?? "";
}
