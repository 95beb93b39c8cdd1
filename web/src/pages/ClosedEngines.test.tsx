// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { api, session } from "../api/server";
import { draw, find, interact, texts } from "../testing/drawing";
import { ClosedEngines } from "./ClosedEngines";

const fleet = (name: string, state: string) => ({ name, state, t: null, broken: null });

test("a closed fleet is listed and opened with one click", async () => {
  session.value = { kind: "open", session: { name: "anna", role: "operator", tokens_required: false } };
  vi.spyOn(api, "schedulers").mockResolvedValue({ version: "0.1.0", demo: false, schedulers: [] });
  const clock = { ahead_sec: 0, agrees_in_sec: 0 };
  vi.spyOn(api, "readiness").mockResolvedValue({ status: "ready", checks: [], clock });
  let fleets = [fleet("hall", "ready"), fleet("yard", "closed")];
  vi.spyOn(api, "get").mockImplementation(() => Promise.resolve({ fleets }) as never);
  const post = vi.spyOn(api, "post").mockImplementation(() => {
    fleets = fleets.map(({ name }) => fleet(name, "ready"));
    return Promise.resolve({ fleets }) as never;
  });
  const page = draw(<ClosedEngines scheduler="fleet" />);
  await vi.waitFor(() => interact(() => find(page, "[data-testid=closed-yard]")));

  expect(texts(page, "p > span")).toEqual(["The fleet yard is closed."]);
  interact(() => find<HTMLButtonElement>(page, "[data-testid=open-yard]").click());
  await vi.waitFor(() => interact(() => expect(page.querySelector("[data-testid=closed-engines]")).toBeNull()));

  expect(post.mock.calls[0]?.slice(0, 2)).toEqual(["/api/v1/fleet/{fleet}/open", { fleet: "yard" }]);
});

test("a scheduler with fixed engines has no closed ones", () => {
  const get = vi.spyOn(api, "get").mockClear();

  expect(draw(<ClosedEngines scheduler="tally" />).textContent).toBe("");
  expect(get).not.toHaveBeenCalled();
});
