// @vitest-environment happy-dom

import { options, render } from "preact";
import { afterEach, expect, test } from "vitest";

import { turnNothing, unturned } from "./bidi_controls";

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

test("what turns the order of reading is written out, and no other letter", () => {
  expect(unturned("a\u202eb\u2067c\u200f")).toBe("a\\u202eb\\u2067c\\u200f");
  expect(unturned("שלום – 12\u202f345 👩\u200d🔧")).toBe("שלום – 12\u202f345 👩\u200d🔧");
});

test("a name of somebody else turns nothing on the page, wherever it stands", () => {
  const name = "\u202eabc";
  const place = document.createElement("main");
  turnNothing();

  render(
    <ul title={`task ${name}`}>
      <li>{name}</li>
      {[name, "R1"].map((one) => (
        <li key={one}>task {one} waits</li>
      ))}
      <Field name={name} />
    </ul>,
    place,
  );

  expect(place.textContent).toBe("\\u202eabctask \\u202eabc waitstask R1 waits\\u202eabc");
  expect(place.querySelector("ul")?.title).toBe("task \\u202eabc");
  expect(place.querySelector("input")?.value).toBe(name);
});
