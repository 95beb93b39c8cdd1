// @vitest-environment happy-dom

import { beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { api, session } from "../../api/server";
import { draw, find, interact, texts } from "../../testing/drawing";
import { typedName } from "./acting_user";
import { Budget } from "./Budget";
import { Requeue } from "./DeadLetters";
import { DueLine } from "./DueLine";
import { MachineDrawing } from "./MachineDrawing";
import { pictureOf, rowsOf } from "./machine";
import {
  duration,
  filterOptions,
  fromNow,
  lanesOf,
  localTimes,
  objectHref,
  parseSelection,
  placeOf,
  spanFor,
} from "./model";
import { visitedIn } from "./ObjectPanel";
import { changesOf, Trail } from "./Trail";
import { after, event, governed, job, LAMP, NOW } from "./testing";

beforeEach(() => {
  session.value = { kind: "open", session: { name: "local", role: "operator", tokens_required: false } };
  typedName.value = "";
});

test("the URL names a job or an object, whose id may contain any characters", () => {
  expect(parseSelection(null)).toBeNull();
  expect(parseSelection("job_1")).toEqual({ type: "job", id: "job_1" });
  expect(parseSelection("memory:a/b:c")).toEqual({ type: "object", kind: "memory", id: "a/b:c" });
  expect(objectHref("memory", "a/b")).toBe("#/schedulers/jobs/memory%3Aa%2Fb");
});

test("filter options combine those of state machines and of other jobs, without duplicates", () => {
  const options = filterOptions([LAMP], [job(), job({ object_type: "report", action: "print" })]);

  expect(options).toEqual({ kinds: ["lamp", "memory", "report"], actions: ["press", "print", "verify"] });
});

test("times are relative to now, in the largest whole unit", () => {
  expect([after(12), after(-200), after(0.2), after(7300), after(90_000)].map((time) => fromNow(time, NOW))).toEqual([
    "in 12 s",
    "3 min ago",
    "now",
    "in 2 h",
    "in 1 d",
  ]);
  expect(duration(400)).toBe("0 s");
});

test("timestamps in server sentences become local times, with the date unless it is today", () => {
  const text = localTimes(`due at ${after(60)}, expires at 2030-01-02T12:00:00.123456Z.`, NOW);

  expect(text).toMatch(/^due at \d\d:\d\d:\d\d, expires at 2030-01-02 \d\d:\d\d:\d\d\.$/);
});

test("both axes of a cognition form one state", () => {
  expect(placeOf(governed({ status: "active", epistemic_state: "uncertain" }))).toBe("active/uncertain");
  expect(placeOf(governed())).toBe("off");
});

test("the timeline spans most waiting jobs, later ones are counted", () => {
  const soon = Array.from({ length: 9 }, (_, number) => job({ job_id: `job_${number}`, run_at: after(60 + number) }));
  const jobs = [...soon, job({ job_id: "job_late", run_at: after(86_400) })];
  const [lane] = lanesOf(jobs, NOW, spanFor(jobs, NOW));

  expect(spanFor(jobs, NOW)).toBe(120_000);
  expect([lane?.marks.length, lane?.later]).toEqual([9, 1]);
  expect(spanFor([], NOW)).toBe(120_000);
});

test("marks show whether a job is waiting, overdue or running", () => {
  const jobs = [
    job(),
    job({ job_id: "job_2", run_at: after(-9999) }),
    job({ job_id: "job_3", run_at: after(-5), status: "running" }),
  ];
  const page = draw(<DueLine jobs={jobs} waiting={7} now={NOW} />);

  const marks = [...page.querySelectorAll("a.due-mark")].map((mark) => mark.getAttribute("data-kind"));
  expect(marks).toEqual(["waiting", "overdue", "running"]);
  expect(find(page, "a.due-mark").textContent).toBe("memory harbour, waiting, in 30 s");
  expect(page.textContent).toContain("Showing the newest 2 of 7");
  const positions = lanesOf(jobs, NOW, 120_000)[0]?.marks.map(({ at }) => at) ?? [];
  expect(Math.min(...positions)).toBeGreaterThan(0);
});

test("states are in rows by their distance from the first, unreachable ones last", () => {
  expect(rowsOf(LAMP)).toEqual([["off"], ["on"], ["broken"], ["lost"]]);
});

test("arrows between the same two states are one line with a combined label", () => {
  const { lines, boxes, width } = pictureOf(LAMP);

  expect(lines.map(({ source, target, label }) => `${source}>${target} ${label}`)).toEqual([
    "off>on press: pressed",
    "on>off press: pressed",
    "on>broken press: bang, press: smoke",
    "broken>off press: mended",
  ]);
  expect(boxes.every(({ x }) => x >= 0 && x < width)).toBe(true);
  expect(lines.map(({ path }) => path).join()).not.toMatch(/NaN|undefined/);
});

test("the current state and its outgoing transitions are highlighted, visited states are marked", () => {
  const page = draw(<MachineDrawing machine={LAMP} current="on" visited={["off", "on"]} />);

  expect(find(page, "[data-testid=current-state]").getAttribute("data-place")).toBe("on");
  expect(page.querySelectorAll(".machine-line[data-current=true]")).toHaveLength(2);
  expect(find(page, "[data-place=off]").getAttribute("data-state")).toBe("visited");
  expect(find(page, "svg").getAttribute("aria-label")).toBe("4 states; current: on");
});

test("visited states are taken from the audit trail, on both axes", () => {
  const created = event({ before: null, after: { status: "candidate", epistemic_state: "uncertain" } });

  expect(visitedIn([created, event(), event({ before: null, after: { rollback_id: "rb_1" } })])).toEqual([
    "candidate/uncertain",
    "candidate",
    "verified",
  ]);
});

test("an event shows its changes, actor, reason and evidence", () => {
  const page = draw(<Trail events={[event()]} now={NOW} label="history" />);

  expect(texts(page, ".change dt")).toEqual(["status", "transitioned"]);
  expect(find(page, ".change dd").textContent).toContain("candidate → becomes verified");
  expect(page.textContent).toContain("two sources say the same");
  expect(find(page, ".trail-evidence").textContent).toBe("evidence note:1");
});

test("empty values of a new object are left out", () => {
  expect(changesOf(null, { status: "candidate", verifications: 0, closed: null, sources: [] })).toEqual([
    { name: "status", before: null, after: "candidate" },
  ]);
  expect(changesOf({ pending: true, left: 2 }, { pending: false, left: 2 })).toEqual([
    { name: "pending", before: true, after: false },
  ]);
});

test("a dead letter is requeued, and a refusal is shown", async () => {
  const done = vi.fn();
  const post = vi.spyOn(api, "post").mockRejectedValueOnce(new ApiError("job_not_dead_letter", "It runs.", 409));
  const page = draw(<Requeue job={job({ status: "dead_letter" })} onDone={done} />);

  interact(() => find(page, "[data-testid=requeue]").click());
  await vi.waitFor(() => expect(page.textContent).toContain("It runs."));
  expect(done).not.toHaveBeenCalled();

  post.mockResolvedValueOnce({ job: job() });
  interact(() => find(page, "[data-testid=requeue]").click());
  await vi.waitFor(() => expect(done).toHaveBeenCalledOnce());
  expect(post.mock.lastCall?.[1]).toEqual({ job_id: "job_000000000001" });
});

test("viewers cannot requeue", () => {
  session.value = { kind: "open", session: { name: "eve", role: "viewer", tokens_required: true } };
  const page = draw(<Requeue job={job({ status: "dead_letter" })} onDone={() => undefined} />);

  expect(find<HTMLButtonElement>(page, "[data-testid=requeue]").disabled).toBe(true);
});

test("a budget shows what is left of it", () => {
  expect(draw(<Budget object={governed()} />).textContent).toContain("1 of 2 verifications left");
});
