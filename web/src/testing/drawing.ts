/** Rendering components into a document for a test. */

import type { ComponentChild } from "preact";
import { render } from "preact";
import { act } from "preact/test-utils";

let container: HTMLElement | null = null;

/** Render `content` into the document and return its container; a second call renders again. */
export function draw(content: ComponentChild): HTMLElement {
  if (container === null) {
    container = document.createElement("div");
    document.body.append(container);
  }
  const into = container;
  void act(() => render(content, into));
  return into;
}

/** Run an interaction and flush the updates of the components. */
export function interact(action: () => void): void {
  void act(action);
}

/** The first element that matches; throws when there is none. */
export function find<E extends Element = HTMLElement>(within: ParentNode, selector: string): E {
  const element = within.querySelector<E>(selector);
  if (element === null) throw new Error(`no element matches ${selector}`);
  return element;
}

export function texts(within: ParentNode, selector: string): string[] {
  return [...within.querySelectorAll(selector)].map((element) => element.textContent ?? "");
}

/** Remove what `draw` has rendered. */
export function undraw(): void {
  if (container === null) return;
  render(null, container);
  container.remove();
  container = null;
}
