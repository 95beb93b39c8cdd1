// @vitest-environment happy-dom

import { expect, test } from "vitest";

import type { SchedulerPast } from "../../api/types";
import { draw, find, texts } from "../../testing/drawing";
import { eventId, eventNumber } from "./model";
import { eventsUntil, PastMoment, placeAfter, stateAfter } from "./PastMoment";
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

test("event ids and numbers are converted both ways", () => {
  expect(eventNumber("aud_000000000012")).toBe(12);
  expect(eventId(12)).toBe("aud_000000000012");
});

test("events until a moment include its own event", () => {
  expect(eventsUntil([FIRST, SECOND, GATE], 8)).toEqual([FIRST, SECOND]);
  expect(eventsUntil([FIRST, SECOND], null)).toEqual([FIRST, SECOND]);
});

test("the state of an object is that of its last transition, on both axes", () => {
  expect(placeAfter([FIRST, SECOND, GATE])).toBe("active/uncertain");
  expect(placeAfter([FIRST])).toBe("candidate");
  expect(placeAfter([GATE])).toBeNull();
});

test("the state of a job is that of its last event", () => {
  const delivered = event({ event_type: "scheduler_job", after: { status: "running" } });

  expect(stateAfter([delivered, SECOND])).toBe("running");
  expect(stateAfter([SECOND])).toBeNull();
});

test("a moment shows its event, the jobs due then, and objects by state", () => {
  const page = draw(<PastMoment moment={MOMENT} />);

  expect(find(page, "[data-testid=readout-dead-letters]").getAttribute("data-alarm")).toBe("true");
  expect(find(page, "a.due-mark").textContent).toBe("memory harbour, waiting, in 30 s");
  expect(texts(page, "span.place-chip")).toEqual(["active/uncertain 2", "candidate 3"]);
  expect(page.textContent).toContain("two sources say the same");
});

test("a moment before the first event is empty", () => {
  expect(draw(<PastMoment moment={{ ...MOMENT, event: null, now: null }} />).textContent).toContain(
    "No events before this moment.",
  );
});
