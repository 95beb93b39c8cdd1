/** The network, drawn: colour by position, width by use, lights as things happen. Mouse and arrow keys choose a
 * participant; what is chosen is told in words below, and the same is there as tables. */

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
import type { Places } from "./layout";
import { placesOf } from "./layout";
import type { Light } from "./lit";
import type { Chosen, Network } from "./model";
import { nameOf, usedShare } from "./model";
import { NetworkTables } from "./NetworkTables";
import type { Scene, Size } from "./paint";
import { nodeAt, paintLights, paintNetwork } from "./paint";

interface NetworkViewProps {
  /** What the places are kept under: the scenario. */
  readonly name: string;
  readonly network: Network;
  readonly lights: ReadonlySignal<readonly Light[]>;
  readonly chosen: Chosen;
  readonly onChoose: (chosen: Chosen) => void;
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

export function NetworkView({ name, network, lights, chosen, onChoose }: NetworkViewProps) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const pointed = useSignal<string | null>(null);
  const dark = useDarkScheme();
  const id = useId();
  const places = placesOf(`${name} ${network.equivalent}`, network);
  const size = useMemo(() => sizeFor(width.value), [width.value]);
  const shown: Chosen = pointed.value === null ? chosen : { kind: "node", id: pointed.value };
  const order = useMemo(() => readingOrder(network, places), [places, network.nodes.size]);

  useLayoutEffect(() => {
    const context = resizeCanvas(canvas.current, size);
    if (context === null || frame.current === null) return;
    paintNetwork(context, { network, places, size, chosen: shown }, paletteOf(frame.current));
  }, [network, places, size, keyOf(shown), theme.value, dark.value]);

  const onKey = (event: KeyboardEvent) => {
    const next = stepped(order, chosen, event.key);
    if (next === undefined) return;
    event.preventDefault();
    onChoose(next === null ? null : { kind: "node", id: next });
  };

  return (
    <section class="panel credit-network" aria-labelledby={`${id}title`} data-testid="panel-network">
      <div class="panel-head">
        <h2 id={`${id}title`}>Who owes whom</h2>
        <span class="count">
          {counted(network.nodes.size, "participant")}, {counted(network.links.size, "line")}, in {network.equivalent}
        </span>
      </div>
      <div
        ref={frame}
        class="network-frame"
        tabIndex={0}
        role="group"
        aria-label="Picture of the network. Arrow keys choose a participant, Escape lets go. Tables follow."
        aria-describedby={`${id}told`}
        onKeyDown={onKey}
        data-testid="network"
      >
        <canvas ref={canvas} aria-hidden="true" />
        <Lights scene={{ network, places, size, chosen }} lights={lights} frame={frame} />
        <div
          class="network-touch"
          aria-hidden="true"
          style={{ height: `${size.height}px` }}
          onPointerMove={(event) => (pointed.value = nodeAt({ network, places, size }, event.offsetX, event.offsetY))}
          onPointerLeave={() => (pointed.value = null)}
          onClick={(event) => {
            const found = nodeAt({ network, places, size }, event.offsetX, event.offsetY);
            onChoose(found === null ? null : { kind: "node", id: found });
          }}
        />
      </div>
      <p class="network-told" id={`${id}told`} aria-live="polite" data-testid="network-told">
        {shown === null ? <Legend /> : sentenceOf(network, shown)}
      </p>
      <NetworkTables network={network} chosen={chosen} onChoose={onChoose} />
    </section>
  );
}

interface LightsProps {
  readonly scene: Scene;
  readonly lights: ReadonlySignal<readonly Light[]>;
  readonly frame: RefObject<HTMLDivElement | null>;
}

/** The lights have a canvas of their own: the network below is not drawn again for each step of theirs. */
function Lights({ scene, lights, frame }: LightsProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(scene);
  latest.current = scene;
  const { width, height } = scene.size;
  const some = useComputed(() => lights.value.length);
  useEffect(() => {
    const context = resizeCanvas(canvas.current, { width, height });
    if (context === null || frame.current === null) return;
    const colours = paletteOf(frame.current);
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let step = 0;
    const paint = () => {
      const left = paintLights(context, latest.current, lights.value, performance.now(), colours, still);
      step = left ? requestAnimationFrame(paint) : 0;
    };
    paint();
    return () => cancelAnimationFrame(step);
  }, [width, height, lights.value, some.value, theme.value]);
  return <canvas ref={canvas} class="network-lights" aria-hidden="true" />;
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
        <span class="net-line" data-kind="used" aria-hidden="true" /> the wider, the more is used
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
        <span class="net-line" data-kind="refusal" aria-hidden="true" /> stuck here
      </span>
    </span>
  );
}

/** What is chosen, in words. */
export function sentenceOf(network: Network, chosen: NonNullable<Chosen>): string {
  const { equivalent } = network;
  if (chosen.kind === "line") {
    const link = network.links.get(`${chosen.from}\u0000${chosen.to}`);
    const [creditor, debtor] = [nameOf(network, chosen.from), nameOf(network, chosen.to)];
    if (link === undefined) return `${creditor} trusts ${debtor} with nothing now.`;
    const percent = Math.round(100 * usedShare(link));
    return `${creditor} trusts ${debtor} with ${amount(link.trust_limit)} ${equivalent}; ${amount(link.used)} is owed (${percent} %), ${amount(link.available)} is left.`;
  }
  const node = network.nodes.get(chosen.id);
  if (node === undefined) return `${chosen.id} is not here any more.`;
  const lines = [...network.links.values()];
  const trusted = lines.filter(({ target }) => target === chosen.id);
  const trusts = lines.filter(({ source }) => source === chosen.id);
  const full = trusted.filter((link) => usedShare(link) >= 1).length;
  const stands =
    node.net_sign === 0
      ? "owes as much as it is owed"
      : node.net_sign > 0
        ? `is owed ${amount(node.net_balance)} ${equivalent} more than it owes`
        : `owes ${amount(node.net_balance.replace("-", ""))} ${equivalent} more than it is owed`;
  const status = node.status === "active" ? "" : `, ${node.status}`;
  const who = `${nameOf(network, chosen.id)} (${node.type}${status})`;
  return `${who} ${stands}. Trusted by ${trusted.length}, ${fullLines(full)}; trusts ${trusts.length}.`;
}

function fullLines(count: number): string {
  if (count === 0) return "no line of these is full";
  return count === 1 ? "one line of these is full" : `${count} lines of these are full`;
}

function sizeFor(width: number): Size {
  return { width, height: Math.round(Math.min(560, Math.max(300, width * (width < 560 ? 0.95 : 0.66)))) };
}

/** From the top to the bottom, as one reads; so that arrow keys pass everybody once. */
export function readingOrder(network: Network, places: Places): string[] {
  const row = (id: string) => Math.floor(10 * (places.get(id)?.y ?? 0));
  const across = (id: string) => places.get(id)?.x ?? 0;
  return [...network.nodes.keys()].sort((a, b) => row(a) - row(b) || across(a) - across(b) || (a < b ? -1 : 1));
}

/** Who is chosen after a key: null is nobody, undefined a key that means nothing here. */
export function stepped(order: readonly string[], chosen: Chosen, key: string): string | null | undefined {
  if (key === "Escape") return null;
  if (key === "Home") return order[0] ?? null;
  if (key === "End") return order.at(-1) ?? null;
  const step = STEPS[key];
  if (step === undefined || order.length === 0) return undefined;
  const at = chosen?.kind === "node" ? order.indexOf(chosen.id) : -1;
  if (at < 0) return (step > 0 ? order[0] : order.at(-1)) ?? null;
  return order[(at + step + order.length) % order.length] ?? null;
}

function keyOf(chosen: Chosen): string {
  return chosen === null ? "" : chosen.kind === "node" ? chosen.id : `${chosen.from}\u0000${chosen.to}`;
}
