// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { draw, interact } from "../../testing/drawing";
import type { Polled } from "./polling";
import { usePolled } from "./polling";

let waiting: ((answer: string) => void)[] = [];
let polled: Polled<string> | null = null;

beforeEach(() => {
  vi.useFakeTimers();
  waiting = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function Asking() {
  polled = usePolled("all", () => new Promise<string>((answer) => waiting.push(answer)));
  return <p>{polled.value.value}</p>;
}

async function answered(number: number, answer: string): Promise<void> {
  waiting[number]?.(answer);
  await vi.advanceTimersByTimeAsync(0);
}

test("an answer that was asked for before a deed is not shown after it", async () => {
  draw(<Asking />);
  interact(() => polled?.refresh());

  await answered(1, "after");
  await answered(0, "before");

  expect(polled?.value.value).toBe("after");
});
