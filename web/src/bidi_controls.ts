/** Characters that turn the order of reading are shown as what they are.
 *
 * Names come from others: one that begins with U+202E would be read backwards, and the words behind it, too.
 */

import type { ComponentChildren, VNode } from "preact";
import { Fragment, options } from "preact";

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Attributes that are read, like text. */
const READ = ["title", "aria-label"];

/** A text in which nothing is turned: `\u202eabc`. */
export function unturned(text: string): string {
  return text.replace(TURNING, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** From now on everything that is drawn is drawn unturned; what is sent to the server stays as it is. */
export function turnNothing(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    if (typeof node.type === "string" || node.type === Fragment) unturn(node);
    before?.(node);
  };
}

function unturn(node: VNode): void {
  const props = node.props as Record<string, unknown> & { children?: ComponentChildren };
  if (props.children !== undefined) props.children = drawn(props.children);
  for (const name of READ) {
    const value = props[name];
    if (typeof value === "string") props[name] = unturned(value);
  }
}

function drawn(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return unturned(children);
  return Array.isArray(children) ? children.map(drawn) : children;
}
