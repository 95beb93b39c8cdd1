/** What the page of jobs reckons with: who is chosen, how far off a time is, and where a job stands on the time line. */

import type { SchedulerGoverned, SchedulerJob, SchedulerMachine, SchedulerStatus } from "../../api/types";
import { route, schedulerHref } from "../../route";
import { clockTime } from "../../wording";

export const STATES: readonly SchedulerStatus[] = ["queued", "running", "succeeded", "failed", "dead_letter"];

/** A shape for each state, beside its colour. */
export const SIGNS: Readonly<Record<SchedulerStatus, string>> = {
  queued: "○",
  running: "◐",
  succeeded: "●",
  failed: "✗",
  dead_letter: "▲",
};

/** What the address names: a job by its id, an object as `type:id`. */
export type Chosen =
  | { readonly what: "job"; readonly id: string }
  | { readonly what: "object"; readonly kind: string; readonly id: string };

export function chosenIn(name: string | null): Chosen | null {
  if (name === null) return null;
  const colon = name.indexOf(":");
  if (colon < 1) return { what: "job", id: name };
  return { what: "object", kind: name.slice(0, colon), id: name.slice(colon + 1) };
}

/** The words to filter by: those of the machines, and those of jobs that are about nothing governed. */
export function wordsOf(
  machines: readonly SchedulerMachine[],
  jobs: readonly SchedulerJob[],
): { readonly kinds: string[]; readonly actions: string[] } {
  const kinds = [...machines.map(({ object_type }) => object_type), ...jobs.map(({ object_type }) => object_type)];
  const led = machines.flatMap(({ arrows }) => arrows.map(({ action }) => action));
  const actions = [...led, ...jobs.map(({ action }) => action)];
  return { kinds: [...new Set(kinds)].sort(), actions: [...new Set(actions)].sort() };
}

export function jobHref(id: string): string {
  return besideHref(id);
}

export function objectHref(kind: string, id: string): string {
  return besideHref(`${kind}:${id}`);
}

/** The page with another one chosen, or none: the moment and the table stay as they are. */
export function besideHref(name: string | null): string {
  const here = route.value;
  return here.page === "scheduler" && here.scheduler === "jobs"
    ? schedulerHref("jobs", name, here.at, here.on)
    : schedulerHref("jobs", name);
}

/** Where an object is in its machine: both axes in one word. */
export function placeOf({ status, epistemic_state }: SchedulerGoverned): string {
  return epistemic_state === null ? status : `${status}/${epistemic_state}`;
}

/** The number in the id of an event: `aud_000000000012` is the twelfth. */
export function eventNumber(id: string): number {
  return Number(id.slice(id.indexOf("_") + 1));
}

/** The id of the event with this number. */
export function eventId(number: number): string {
  return `aud_${String(number).padStart(12, "0")}`;
}

/** `dead_letter` as it is said. */
export function said(word: string): string {
  return word.replaceAll("_", " ");
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** A length of time in its largest whole unit. */
export function length(ms: number): string {
  for (const [unit, name] of UNITS) {
    if (ms >= unit) return `${Math.floor(ms / unit)} ${name}`;
  }
  return "0 s";
}

/** `in 12 s`, `3 min ago`, `now`. */
export function fromNow(time: string, now: number): string {
  const ahead = Date.parse(time) - now;
  if (Math.abs(ahead) < 1000) return "now";
  return ahead > 0 ? `in ${length(ahead)}` : `${length(-ahead)} ago`;
}

const MOMENT = /(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** A sentence of the server with its times as a clock on the wall shows them; of another day with the date. */
export function plain(sentence: string, now: number): string {
  const today = new Date(now).toDateString();
  return sentence.replace(MOMENT, (moment, date: string) => {
    const time = new Date(moment);
    return time.toDateString() === today ? clockTime(time.getTime()) : `${date} ${clockTime(time.getTime())}`;
  });
}

/** The time of day of a moment, with the date where it is another day than now; nothing where it is not known. */
export function timeOf(ms: number, now: number): string {
  if (!Number.isFinite(ms)) return "";
  const time = clockTime(ms);
  return new Date(ms).toDateString() === new Date(now).toDateString()
    ? time
    : `${new Date(ms).toISOString().slice(0, 10)} ${time}`;
}

const SPANS_MS: readonly number[] = [
  120_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000, 2_592_000_000, 31_536_000_000,
];
const SHARE_SHOWN = 0.9;
/** How much of the line lies before now. */
export const BEFORE = 0.12;

/** The shortest span in which most of what waits becomes due. */
export function spanFor(jobs: readonly SchedulerJob[], now: number): number {
  const ahead = jobs.map((job) => Date.parse(job.run_at) - now).sort((one, other) => one - other);
  const wanted = ahead[Math.floor((ahead.length - 1) * SHARE_SHOWN)] ?? 0;
  return SPANS_MS.find((span) => span >= wanted) ?? (SPANS_MS.at(-1) as number);
}

export interface Mark {
  readonly job: SchedulerJob;
  /** In percent of the line. */
  readonly at: number;
  readonly kind: "waiting" | "overdue" | "running";
}

export interface Lane {
  readonly action: string;
  readonly marks: readonly Mark[];
  /** How many come after the end of the line. */
  readonly later: number;
}

/** One lane an action, its jobs where they are due; what is overdue stands before now, no further than the edge. */
export function lanesOf(jobs: readonly SchedulerJob[], now: number, span: number): Lane[] {
  const actions = [...new Set(jobs.map((job) => job.action))].sort();
  return actions.map((action) => {
    const mine = jobs.filter((job) => job.action === action);
    const placed = mine.map((job) => markOf(job, now, span));
    return {
      action,
      marks: placed.filter((mark) => mark.at <= 100),
      later: placed.filter((mark) => mark.at > 100).length,
    };
  });
}

function markOf(job: SchedulerJob, now: number, span: number): Mark {
  const ahead = Date.parse(job.run_at) - now;
  const at = Math.max(1, (BEFORE + (1 - BEFORE) * (ahead / span)) * 100);
  const kind = job.status === "running" ? "running" : ahead < 0 ? "overdue" : "waiting";
  return { job, at: kind === "running" ? BEFORE * 100 : at, kind };
}

/** Where the scale has its ticks, in percent, and what they say. */
export function ticksOf(span: number): { readonly at: number; readonly words: string }[] {
  return [0, 0.5, 1].map((part) => ({
    at: (BEFORE + (1 - BEFORE) * part) * 100,
    words: part === 0 ? "now" : length(span * part),
  }));
}
