// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import type { Reason } from "../api/client";
import { ApiError } from "../api/client";
import { doing, draw, find, texts } from "../testing/drawing";
import { ConnectionBadge } from "./ConnectionBadge";
import { ErrorNote } from "./ErrorNote";
import { JsonTree } from "./JsonTree";
import { roomForMarks } from "./marks";
import { focusTarget, Nav } from "./Nav";
import { ReasonChain } from "./ReasonChain";
import { TimeSlider } from "./TimeSlider";

const leaf = (code: string): Reason => ({ code, sentence: `${code} holds.`, facts: {}, because: [] });
const CHAIN: Reason = {
  code: "not_enough",
  sentence: "The tally holds less than is asked for.",
  facts: { asked: 9, parts: [1, 2] },
  because: [
    { ...leaf("taken_before"), because: [{ ...leaf("command"), because: [leaf("root")] }] },
    leaf("delivery_pending"),
  ],
};

test("a reason shows its code, its sentence and its facts", () => {
  const page = draw(<ReasonChain reason={CHAIN} />);

  const first = find(page, "[data-testid=reason]");
  expect(find(first, ".reason-sentence").textContent).toBe("not_enough The tally holds less than is asked for.");
  expect(texts(find(first, "dl"), "dt")).toEqual(["asked", "parts"]);
  expect(texts(find(first, "dl"), "dd")).toEqual(["9", "1, 2"]);
});

test("what a reason rests on is nested below it, in order", () => {
  const page = draw(<ReasonChain reason={CHAIN} />);

  const below = find(page, "[data-code=not_enough] > details > ol");
  expect([...below.children].map((item) => item.getAttribute("data-code"))).toEqual([
    "taken_before",
    "delivery_pending",
  ]);
});

test("the first levels of a chain are open and deeper ones wait to be opened", () => {
  const page = draw(<ReasonChain reason={CHAIN} />);

  expect([...page.querySelectorAll("details")].map((details) => details.open)).toEqual([true, true, false]);
});

test("a reason without grounds has nothing to open", () => {
  expect(draw(<ReasonChain reason={leaf("root")} />).querySelector("details")).toBeNull();
});

test("an error shows code, message, facts and request id", () => {
  const page = draw(
    <ErrorNote error={new ApiError("no_such_record", "There is no record 9", 404, { last_n: 4 }, "r-17")} />,
  );

  const note = find(page, "[role=alert]");
  expect(note.getAttribute("data-code")).toBe("no_such_record");
  expect(note.textContent).toContain("There is no record 9");
  expect(find(note, "[data-testid=request-id]").textContent).toBe("r-17");
  expect(texts(note, "dd")).toEqual(["4"]);
});

test("the badge says since when the connection is lost, and a button retries", () => {
  const retry = vi.fn();
  const page = draw(
    <ConnectionBadge connection={{ kind: "lost", since: 0, retryAt: Date.now() + 5000 }} onRetry={retry} />,
  );

  doing(() => find(page, "button").click());

  expect(find(page, "[role=status]").textContent).toMatch(/^Lost since \d\d:\d\d:\d\d$/);
  expect(find(page, ".connection-countdown").textContent).toMatch(/^retrying in [45] s$/);
  expect(retry).toHaveBeenCalledOnce();
});

test("the countdown does not talk to screen readers", () => {
  const page = draw(
    <ConnectionBadge connection={{ kind: "lost", since: 0, retryAt: Date.now() + 5000 }} onRetry={() => undefined} />,
  );

  expect(find(page, ".connection-countdown").getAttribute("aria-hidden")).toBe("true");
});

test("the current room is marked in the navigation", () => {
  const rooms = ["tally", "fleet"].map((name) => ({
    name,
    title: name,
    sentence: "",
    state: "ready" as const,
    reason: null,
    engines: [],
  }));

  const page = draw(<Nav rooms={rooms} route={{ page: "room", room: "fleet", engine: null, at: null }} />);

  expect(texts(page, "[aria-current=page]")).toEqual(["fleet ● ready"]);
  expect([...page.querySelectorAll("a")].map((link) => link.getAttribute("href"))).toEqual([
    "#/",
    "#/rooms/tally",
    "#/rooms/fleet",
  ]);
});

test("arrow keys go round the links and other keys mean what they always mean", () => {
  expect(focusTarget("ArrowDown", 2, 3)).toBe(0);
  expect(focusTarget("ArrowUp", 0, 3)).toBe(2);
  expect(focusTarget("End", 0, 3)).toBe(2);
  expect(focusTarget("Tab", 0, 3)).toBeNull();
});

function slider(at: number | null, onMove: (n: number | null) => void = () => undefined) {
  return draw(
    <TimeSlider
      first={10}
      last={110}
      at={at}
      snapshots={[
        [35, 1],
        [60, 2],
        [85, 3],
      ]}
      onMove={onMove}
    />,
  );
}

test("a slider at its right end is live", () => {
  const moved = vi.fn();
  const input = find<HTMLInputElement>(slider(50, moved), "input");

  doing(() => {
    input.value = "110";
    input.dispatchEvent(new Event("input", { bubbles: true }));
  });

  expect(moved).toHaveBeenCalledWith(null);
});

test("a slider says in words where it is", () => {
  expect(find(slider(null), "input").getAttribute("aria-valuetext")).toBe("live, record 110");
  expect(find(slider(50), "input").getAttribute("aria-valuetext")).toBe("record 50 of 110");
});

test("the steps of a slider go to the snapshot before, one back and one on", () => {
  const moved = vi.fn();
  const page = slider(60, moved);

  for (const button of page.querySelectorAll<HTMLElement>(".slider-buttons button")) doing(() => button.click());

  expect(moved.mock.calls).toEqual([[35], [59], [61]]);
});

test("marks stand where the snapshots lie, and crowded ones share a mark", () => {
  expect(
    roomForMarks(
      [
        [35, 1],
        [60, 2],
      ],
      10,
      110,
    ),
  ).toEqual([25, 50]);
  expect(
    roomForMarks(
      Array.from({ length: 5000 }, (_, n) => [n, n] as const),
      0,
      5000,
    ),
  ).toHaveLength(101);
  expect(roomForMarks([[0, 0]], 0, 0)).toEqual([]);
});

test("a tree shows members by name and lists of alike objects as tables", () => {
  const page = draw(
    <JsonTree
      name="state"
      value={{
        total: 18446744073709551557n,
        pending: [
          { at: 1, amount: 2 },
          { at: 3, amount: 4 },
        ],
        empty: [],
      }}
    />,
  );

  expect(texts(page, ".members > div > dt")).toEqual(["total", "pending", "empty"]);
  expect(find(page, ".leaf").textContent).toBe("18446744073709551557");
  expect(texts(page, "tbody td")).toEqual(["1", "2", "3", "4"]);
});

test("only a value that changed lights up", () => {
  draw(<JsonTree name="state" value={{ total: 1, now: 5 }} />);

  const page = draw(<JsonTree name="state" value={{ total: 2, now: 5 }} />);

  expect(texts(page, ".leaf-changed")).toEqual(["2"]);
});
