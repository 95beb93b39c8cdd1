import { expect, test } from "vitest";

import { entryOf, LazyPage } from "./registry";

const Page = () => null;

test("a scheduler without its own page gets the generic one, even if named like an Object property", () => {
  expect(entryOf("constructor")).toBe(entryOf("tally"));
  expect(entryOf("actions")).not.toBe(entryOf("tally"));
});

test("a page is loaded once", async () => {
  let loads = 0;
  const lazy = new LazyPage(() => {
    loads += 1;
    return Promise.resolve(Page);
  });

  await lazy.load();
  await lazy.load();

  expect(lazy.page.value).toBe(Page);
  expect(loads).toBe(1);
});

test("a page that failed to load reports an error and is loaded again when opened again", async () => {
  let available = false;
  const lazy = new LazyPage(() => (available ? Promise.resolve(Page) : Promise.reject(new TypeError("no such file"))));

  await lazy.load();
  expect(lazy.error.value?.code).toBe("page_not_loaded");

  available = true;
  await lazy.load();
  expect(lazy.page.value).toBe(Page);
  expect(lazy.error.value).toBeNull();
});
