/** Drawing components into a document for a test, and taking them out again. */

import type { ComponentChild } from "preact";
import { render } from "preact";
import { act } from "preact/test-utils";

let place: HTMLElement | null = null;

/** Draw `content` into the document and hand back the element around it; drawing again redraws. */
export function draw(content: ComponentChild): HTMLElement {
  if (place === null) {
    place = document.createElement("div");
    document.body.append(place);
  }
  const into = place;
  void act(() => render(content, into));
  return into;
}

/** Do something to the document and let the components follow. */
export function doing(action: () => void): void {
  void act(action);
}

/** The one element that matches, or an error that names what was looked for. */
export function find<E extends Element = HTMLElement>(within: ParentNode, selector: string): E {
  const found = within.querySelector<E>(selector);
  if (found === null) throw new Error(`nothing matches ${selector}`);
  return found;
}

export function texts(within: ParentNode, selector: string): string[] {
  return [...within.querySelectorAll(selector)].map((element) => element.textContent ?? "");
}

/** Take away what was drawn. */
export function undraw(): void {
  if (place === null) return;
  render(null, place);
  place.remove();
  place = null;
}
