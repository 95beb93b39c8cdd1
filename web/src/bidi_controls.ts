/** Bidirectional control characters are displayed as escapes.
 *
 * Names are user input: one that starts with U+202E would reverse itself and the text after it.
 */

import type { ComponentChildren, VNode } from "preact";
import { Fragment, options } from "preact";

const BIDI_CONTROLS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Attributes that are displayed or read out like text. */
const TEXT_ATTRIBUTES = ["title", "aria-label"];

/** Replace each control character by its escape: `\u202eabc`. */
export function escapeBidiControls(text: string): string {
  return text.replace(BIDI_CONTROLS, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Escape all rendered text from now on; values sent to the server are unchanged. */
export function escapeAllBidiControls(): void {
  const before = options.vnode;
  options.vnode = (node) => {
    if (typeof node.type === "string" || node.type === Fragment) escapeNode(node);
    before?.(node);
  };
}

function escapeNode(node: VNode): void {
  const props = node.props as Record<string, unknown> & { children?: ComponentChildren };
  if (props.children !== undefined) props.children = escapeChildren(props.children);
  for (const name of TEXT_ATTRIBUTES) {
    const value = props[name];
    if (typeof value === "string") props[name] = escapeBidiControls(value);
  }
}

function escapeChildren(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return escapeBidiControls(children);
  return Array.isArray(children) ? children.map(escapeChildren) : children;
}
