// @vitest-environment happy-dom

import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { draw, interact } from "../../testing/drawing";
import type { Polled } from "./polling";
import { usePolled } from "./polling";

let pending: ((answer: string) => void)[] = [];
let polled: Polled<string> | null = null;

beforeEach(() => {
  vi.useFakeTimers();
  pending = [];
});

afterEach(() => {
  vi.useRealTimers();
});

function PollingPage() {
  polled = usePolled("all", () => new Promise<string>((answer) => pending.push(answer)));
  return <p>{polled.value.value}</p>;
}

async function respond(number: number, answer: string): Promise<void> {
  pending[number]?.(answer);
  await vi.advanceTimersByTimeAsync(0);
}

test("a response requested before a refresh is dropped", async () => {
  draw(<PollingPage />);
  interact(() => polled?.refresh());

  await respond(1, "after");
  await respond(0, "before");

  expect(polled?.value.value).toBe("after");
});
