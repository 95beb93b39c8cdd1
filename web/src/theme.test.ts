// @vitest-environment happy-dom

import { expect, test } from "vitest";

import { followTheme, theme } from "./theme";

test("the chosen theme is set on the document and saved; system removes the attribute", () => {
  const stop = followTheme();
  const root = document.documentElement.dataset;
  expect(root["theme"]).toBeUndefined();

  theme.value = "dark";
  expect(root["theme"]).toBe("dark");
  expect(localStorage.getItem("pendula.theme")).toBe("dark");

  theme.value = "system";
  expect(root["theme"]).toBeUndefined();
  stop();
});
