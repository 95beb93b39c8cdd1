// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { draw, find, interact } from "../testing/drawing";
import { ConnectionBadge } from "./ConnectionBadge";

test("the badge shows when the connection was lost, and a button retries", () => {
  const retry = vi.fn();
  const page = draw(
    <ConnectionBadge connection={{ kind: "lost", since: 0, retryAt: Date.now() + 5000 }} onRetry={retry} />,
  );

  interact(() => find(page, "button").click());

  expect(find(page, "[role=status]").textContent).toMatch(/^Connection lost at \d\d:\d\d:\d\d$/);
  expect(find(page, ".connection-countdown").textContent).toMatch(/^retrying in [45] s$/);
  expect(retry).toHaveBeenCalledOnce();
});

test("the countdown is hidden from screen readers", () => {
  const page = draw(
    <ConnectionBadge connection={{ kind: "lost", since: 0, retryAt: Date.now() + 5000 }} onRetry={() => undefined} />,
  );

  expect(find(page, ".connection-countdown").getAttribute("aria-hidden")).toBe("true");
});
