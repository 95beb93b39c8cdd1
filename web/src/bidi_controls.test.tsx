// @vitest-environment happy-dom

import { options, render } from "preact";
import { afterEach, expect, test } from "vitest";

import { escapeAllBidiControls, escapeBidiControls } from "./bidi_controls";

const before = options.vnode;

function Field({ name }: { readonly name: string }) {
  return (
    <>
      {name}
      <input value={name} />
    </>
  );
}

afterEach(() => {
  if (before === undefined) delete options.vnode;
  else options.vnode = before;
});

test("only bidirectional control characters are escaped", () => {
  expect(escapeBidiControls("a\u202eb\u2067c\u200f")).toBe("a\\u202eb\\u2067c\\u200f");
  expect(escapeBidiControls("שלום – 12\u202f345 👩\u200d🔧")).toBe("שלום – 12\u202f345 👩\u200d🔧");
});

test("names in children and attributes are escaped, input values are not", () => {
  const name = "\u202eabc";
  const container = document.createElement("main");
  escapeAllBidiControls();

  render(
    <ul title={`task ${name}`}>
      <li>{name}</li>
      {[name, "R1"].map((robot) => (
        <li key={robot}>task {robot} waits</li>
      ))}
      <Field name={name} />
    </ul>,
    container,
  );

  expect(container.textContent).toBe("\\u202eabctask \\u202eabc waitstask R1 waits\\u202eabc");
  expect(container.querySelector("ul")?.title).toBe("task \\u202eabc");
  expect(container.querySelector("input")?.value).toBe(name);
});
