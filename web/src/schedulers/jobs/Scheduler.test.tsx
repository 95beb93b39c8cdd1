// @vitest-environment happy-dom

import { beforeEach, expect, test, vi } from "vitest";

import { ApiError } from "../../api/client";
import { api, session } from "../../api/server";
import { draw, find, interact, texts } from "../../testing/drawing";
import { typedName } from "./acting";
import { Budget } from "./Budget";
import { Requeue } from "./DeadLetters";
import { DueLine } from "./DueLine";
import { MachineDrawing } from "./MachineDrawing";
import { pictureOf, rowsOf } from "./machine";
import { chosenIn, fromNow, lanesOf, length, objectHref, placeOf, plain, spanFor, wordsOf } from "./model";
import { visitedIn } from "./ObjectLife";
import { changesOf, Trail } from "./Trail";
import { after, event, governed, job, LAMP, NOW } from "./testing";

beforeEach(() => {
  session.value = { kind: "open", session: { name: "local", role: "operator", tokens_required: false } };
  typedName.value = "";
});

test("the address names a job or an object, whose id may hold anything", () => {
  expect(chosenIn(null)).toBeNull();
  expect(chosenIn("job_1")).toEqual({ what: "job", id: "job_1" });
  expect(chosenIn("memory:a/b:c")).toEqual({ what: "object", kind: "memory", id: "a/b:c" });
  expect(objectHref("memory", "a/b")).toBe("#/schedulers/jobs/memory%3Aa%2Fb");
});

test("filters know the words of machines and of jobs about nothing governed, each once", () => {
  const words = wordsOf([LAMP], [job(), job({ object_type: "report", action: "print" })]);

  expect(words).toEqual({ kinds: ["lamp", "memory", "report"], actions: ["press", "print", "verify"] });
});

test("times are told from now, in the largest whole unit", () => {
  expect([after(12), after(-200), after(0.2), after(7300), after(90_000)].map((time) => fromNow(time, NOW))).toEqual([
    "in 12 s",
    "3 min ago",
    "now",
    "in 2 h",
    "in 1 d",
  ]);
  expect(length(400)).toBe("0 s");
});

test("a sentence of the server is told with the time of day, and with the date where it is another day", () => {
  const told = plain(`due at ${after(60)}, expires at 2030-01-02T12:00:00.123456Z.`, NOW);

  expect(told).toMatch(/^due at \d\d:\d\d:\d\d, expires at 2030-01-02 \d\d:\d\d:\d\d\.$/);
});

test("both axes of a cognition are one place", () => {
  expect(placeOf(governed({ status: "active", epistemic_state: "uncertain" }))).toBe("active/uncertain");
  expect(placeOf(governed())).toBe("off");
});

test("the line is as long as most of what waits needs, and what comes later is counted", () => {
  const soon = Array.from({ length: 9 }, (_, number) => job({ job_id: `job_${number}`, run_at: after(60 + number) }));
  const jobs = [...soon, job({ job_id: "job_late", run_at: after(86_400) })];
  const [lane] = lanesOf(jobs, NOW, spanFor(jobs, NOW));

  expect(spanFor(jobs, NOW)).toBe(120_000);
  expect([lane?.marks.length, lane?.later]).toEqual([9, 1]);
  expect(spanFor([], NOW)).toBe(120_000);
});

test("a job is waiting, overdue or running, and its mark says so beside its place", () => {
  const jobs = [
    job(),
    job({ job_id: "job_2", run_at: after(-9999) }),
    job({ job_id: "job_3", run_at: after(-5), status: "running" }),
  ];
  const page = draw(<DueLine jobs={jobs} waiting={7} now={NOW} />);

  const marks = [...page.querySelectorAll("a.due-mark")].map((mark) => mark.getAttribute("data-kind"));
  expect(marks).toEqual(["waiting", "overdue", "running"]);
  expect(find(page, "a.due-mark").textContent).toBe("memory harbour, waiting, in 30 s");
  expect(page.textContent).toContain("The newest 2 of 7");
  const places = lanesOf(jobs, NOW, 120_000)[0]?.marks.map(({ at }) => at) ?? [];
  expect(Math.min(...places)).toBeGreaterThan(0);
});

test("states stand in rows by their steps from the first, and what nothing leads to comes last", () => {
  expect(rowsOf(LAMP)).toEqual([["off"], ["on"], ["broken"], ["lost"]]);
});

test("arrows between the same two states are one line that says all that leads there", () => {
  const { lines, boxes, width } = pictureOf(LAMP);

  expect(lines.map(({ source, target, words }) => `${source}>${target} ${words}`)).toEqual([
    "off>on press: pressed",
    "on>off press: pressed",
    "on>broken press: bang, press: smoke",
    "broken>off press: mended",
  ]);
  expect(boxes.every(({ x }) => x >= 0 && x < width)).toBe(true);
  expect(lines.map(({ path }) => path).join()).not.toMatch(/NaN|undefined/);
});

test("the state an object is in is lit, with the ways out of it, and those it was in are marked", () => {
  const page = draw(<MachineDrawing machine={LAMP} lit="on" visited={["off", "on"]} />);

  expect(find(page, "[data-testid=lit]").getAttribute("data-place")).toBe("on");
  expect(page.querySelectorAll(".machine-line[data-lit=true]")).toHaveLength(2);
  expect(find(page, "[data-place=off]").getAttribute("data-state")).toBe("visited");
  expect(find(page, "svg").getAttribute("aria-label")).toBe("4 states; it is in on");
});

test("the trail tells where an object was, on both axes", () => {
  const was = event({ before: null, after: { status: "candidate", epistemic_state: "uncertain" } });

  expect(visitedIn([was, event(), event({ before: null, after: { rollback_id: "rb_1" } })])).toEqual([
    "candidate/uncertain",
    "candidate",
    "verified",
  ]);
});

test("an event shows what changed, who did it, why, and on which evidence", () => {
  const page = draw(<Trail events={[event()]} now={NOW} label="its life" />);

  expect(texts(page, ".change dt")).toEqual(["status", "transitioned"]);
  expect(find(page, ".change dd").textContent).toContain("candidate → becomes verified");
  expect(page.textContent).toContain("two sources say the same");
  expect(find(page, ".trail-evidence").textContent).toBe("evidence note:1");
});

test("what is new is told without what says nothing", () => {
  expect(changesOf(null, { status: "candidate", verifications: 0, closed: null, sources: [] })).toEqual([
    { name: "status", before: null, after: "candidate" },
  ]);
  expect(changesOf({ pending: true, left: 2 }, { pending: false, left: 2 })).toEqual([
    { name: "pending", before: true, after: false },
  ]);
});

test("a dead letter is requeued, and a refusal is told", async () => {
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

test("viewers requeue nothing", () => {
  session.value = { kind: "open", session: { name: "eve", role: "viewer", tokens_required: true } };
  const page = draw(<Requeue job={job({ status: "dead_letter" })} onDone={() => undefined} />);

  expect(find<HTMLButtonElement>(page, "[data-testid=requeue]").disabled).toBe(true);
});

test("a budget tells what is left of it", () => {
  expect(draw(<Budget object={governed()} />).textContent).toContain("1 of 2 verifications left");
});
