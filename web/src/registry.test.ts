import { expect, test } from "vitest";

import { entryOf, LazyPage } from "./registry";

const Page = () => null;

test("a scheduler without a page of its own gets the generic one, whatever it is called", () => {
  expect(entryOf("constructor")).toBe(entryOf("tally"));
  expect(entryOf("actions")).not.toBe(entryOf("tally"));
});

test("a page is fetched once", async () => {
  let fetched = 0;
  const lazy = new LazyPage(() => {
    fetched += 1;
    return Promise.resolve(Page);
  });

  await lazy.load();
  await lazy.load();

  expect(lazy.page.value).toBe(Page);
  expect(fetched).toBe(1);
});

test("a page that could not be fetched says so, and is fetched again when it is opened again", async () => {
  let there = false;
  const lazy = new LazyPage(() => (there ? Promise.resolve(Page) : Promise.reject(new TypeError("no such file"))));

  await lazy.load();
  expect(lazy.error.value?.code).toBe("room_not_fetched");

  there = true;
  await lazy.load();
  expect(lazy.page.value).toBe(Page);
  expect(lazy.error.value).toBeNull();
});
