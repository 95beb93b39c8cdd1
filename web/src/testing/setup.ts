/** What is done around every test of every file. */

import { afterEach, vi } from "vitest";

import { undraw } from "./drawing";

afterEach(() => {
  undraw();
  vi.restoreAllMocks();
  vi.useRealTimers();
});
