// @vitest-environment happy-dom

import { expect, test } from "vitest";

import type { SchedulerPast } from "../../api/types";
import { draw, find, texts } from "../../testing/drawing";
import { eventId, eventNumber } from "./model";
import { PastMoment, placeAfter, stateAfter, until } from "./Past";
import { after, event, job } from "./testing";

const FIRST = event({ id: "aud_000000000003", before: null, after: { status: "candidate" } });
const SECOND = event({ id: "aud_000000000008", after: { status: "active", epistemic_state: "uncertain" } });
const GATE = event({ id: "aud_000000000009", event_type: "decision_gate", after: { status: "elsewhere" } });

const MOMENT: SchedulerPast = {
  at: "aud_000000000008",
  first: "aud_000000000001",
  last: "aud_000000000020",
  now: after(-3600),
  event: SECOND,
  jobs: { queued: 1, running: 0, succeeded: 4, failed: 0, dead_letter: 2 },
  waiting: [job({ run_at: after(-3570) })],
  places: [
    { object_type: "cognition", place: "active/uncertain", objects: 2 },
    { object_type: "memory", place: "candidate", objects: 3 },
  ],
};

test("events are numbered by their ids, and ids by their numbers", () => {
  expect(eventNumber("aud_000000000012")).toBe(12);
  expect(eventId(12)).toBe("aud_000000000012");
});

test("until a moment there are the events of before, the one it is after among them", () => {
  expect(until([FIRST, SECOND, GATE], 8)).toEqual([FIRST, SECOND]);
  expect(until([FIRST, SECOND], null)).toEqual([FIRST, SECOND]);
});

test("the last change tells where an object was, on both axes, and what a gate says does not", () => {
  expect(placeAfter([FIRST, SECOND, GATE])).toBe("active/uncertain");
  expect(placeAfter([FIRST])).toBe("candidate");
  expect(placeAfter([GATE])).toBeNull();
});

test("the last event of a job tells its state", () => {
  const delivered = event({ event_type: "scheduler_job", after: { status: "running" } });

  expect(stateAfter([delivered, SECOND])).toBe("running");
  expect(stateAfter([SECOND])).toBeNull();
});

test("a moment shows its event, what was due then, and where objects were", () => {
  const page = draw(<PastMoment moment={MOMENT} />);

  expect(find(page, "[data-testid=readout-dead-letters]").getAttribute("data-alarm")).toBe("true");
  expect(find(page, "a.due-mark").textContent).toBe("memory harbour, waiting, in 30 s");
  expect(texts(page, "span.place-chip")).toEqual(["active/uncertain 2", "candidate 3"]);
  expect(page.textContent).toContain("two sources say the same");
});

test("before anything happened there is nothing to show", () => {
  expect(draw(<PastMoment moment={{ ...MOMENT, event: null, now: null }} />).textContent).toContain("Nothing had");
});
