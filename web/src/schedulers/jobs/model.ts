/** Selection, relative times and timeline layout of the page of jobs. */

import type { SchedulerGoverned, SchedulerJob, SchedulerMachine, SchedulerStatus } from "../../api/types";
import { route, schedulerHref } from "../../route";
import { clockTime } from "../../wording";

export const STATES: readonly SchedulerStatus[] = ["queued", "running", "succeeded", "failed", "dead_letter"];

/** A shape for each state, besides its colour. */
export const SIGNS: Readonly<Record<SchedulerStatus, string>> = {
  queued: "○",
  running: "◐",
  succeeded: "●",
  failed: "✗",
  dead_letter: "▲",
};

/** The selection in the URL: a job by its id, an object as `type:id`. */
export type Selection =
  | { readonly type: "job"; readonly id: string }
  | { readonly type: "object"; readonly kind: string; readonly id: string };

export function parseSelection(name: string | null): Selection | null {
  if (name === null) return null;
  const colon = name.indexOf(":");
  if (colon < 1) return { type: "job", id: name };
  return { type: "object", kind: name.slice(0, colon), id: name.slice(colon + 1) };
}

/** Object types and actions to filter by: those of the state machines and of all other jobs. */
export function filterOptions(
  machines: readonly SchedulerMachine[],
  jobs: readonly SchedulerJob[],
): { readonly kinds: string[]; readonly actions: string[] } {
  const kinds = [...machines.map(({ object_type }) => object_type), ...jobs.map(({ object_type }) => object_type)];
  const governed = machines.flatMap(({ arrows }) => arrows.map(({ action }) => action));
  const actions = [...governed, ...jobs.map(({ action }) => action)];
  return { kinds: [...new Set(kinds)].sort(), actions: [...new Set(actions)].sort() };
}

export function jobHref(id: string): string {
  return selectionHref(id);
}

export function objectHref(kind: string, id: string): string {
  return selectionHref(`${kind}:${id}`);
}

/** The URL with another selection and the same moment and tab. */
export function selectionHref(name: string | null): string {
  const current = route.value;
  return current.page === "scheduler" && current.scheduler === "jobs"
    ? schedulerHref("jobs", name, current.at, current.on)
    : schedulerHref("jobs", name);
}

/** The state of an object in its machine, both axes in one word. */
export function placeOf({ status, epistemic_state }: SchedulerGoverned): string {
  return epistemic_state === null ? status : `${status}/${epistemic_state}`;
}

/** The number of an event: 12 for `aud_000000000012`. */
export function eventNumber(id: string): number {
  return Number(id.slice(id.indexOf("_") + 1));
}

/** The id of the event with this number. */
export function eventId(number: number): string {
  return `aud_${String(number).padStart(12, "0")}`;
}

/** A name with spaces: `dead_letter` is `dead letter`. */
export function readable(word: string): string {
  return word.replaceAll("_", " ");
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
  [1000, "s"],
];

/** A duration in its largest whole unit. */
export function duration(ms: number): string {
  for (const [unit, name] of UNITS) {
    if (ms >= unit) return `${Math.floor(ms / unit)} ${name}`;
  }
  return "0 s";
}

/** `in 12 s`, `3 min ago`, `now`. */
export function fromNow(time: string, now: number): string {
  const ahead = Date.parse(time) - now;
  if (Math.abs(ahead) < 1000) return "now";
  return ahead > 0 ? `in ${duration(ahead)}` : `${duration(-ahead)} ago`;
}

const MOMENT = /(\d{4}-\d\d-\d\d)T\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/** Replace the timestamps in a server sentence by local times, with the date unless it is today. */
export function localTimes(sentence: string, now: number): string {
  const today = new Date(now).toDateString();
  return sentence.replace(MOMENT, (moment, date: string) => {
    const time = new Date(moment);
    return time.toDateString() === today ? clockTime(time.getTime()) : `${date} ${clockTime(time.getTime())}`;
  });
}

/** The local time of a moment, with the date unless it is today; empty when unknown. */
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
/** The share of the timeline before now. */
export const BEFORE = 0.12;

/** The shortest span in which 90 % of the jobs become due. */
export function spanFor(jobs: readonly SchedulerJob[], now: number): number {
  const ahead = jobs.map((job) => Date.parse(job.run_at) - now).sort((a, b) => a - b);
  const needed = ahead[Math.floor((ahead.length - 1) * SHARE_SHOWN)] ?? 0;
  return SPANS_MS.find((span) => span >= needed) ?? (SPANS_MS.at(-1) as number);
}

export interface Mark {
  readonly job: SchedulerJob;
  /** Position in percent. */
  readonly at: number;
  readonly kind: "waiting" | "overdue" | "running";
}

export interface Lane {
  readonly action: string;
  readonly marks: readonly Mark[];
  /** The number of jobs due after the end of the timeline. */
  readonly later: number;
}

/** One lane per action with its jobs at their due times; overdue jobs are before now, no further than the edge. */
export function lanesOf(jobs: readonly SchedulerJob[], now: number, span: number): Lane[] {
  const actions = [...new Set(jobs.map((job) => job.action))].sort();
  return actions.map((action) => {
    const marks = jobs.filter((job) => job.action === action).map((job) => markOf(job, now, span));
    return {
      action,
      marks: marks.filter((mark) => mark.at <= 100),
      later: marks.filter((mark) => mark.at > 100).length,
    };
  });
}

function markOf(job: SchedulerJob, now: number, span: number): Mark {
  const ahead = Date.parse(job.run_at) - now;
  const at = Math.max(1, (BEFORE + (1 - BEFORE) * (ahead / span)) * 100);
  const kind = job.status === "running" ? "running" : ahead < 0 ? "overdue" : "waiting";
  return { job, at: kind === "running" ? BEFORE * 100 : at, kind };
}

/** The ticks of the scale: position in percent, and label. */
export function ticksOf(span: number): { readonly at: number; readonly label: string }[] {
  return [0, 0.5, 1].map((part) => ({
    at: (BEFORE + (1 - BEFORE) * part) * 100,
    label: part === 0 ? "now" : duration(span * part),
  }));
}
