/** Clean-up after every test. */

import { afterEach, vi } from "vitest";

import { undraw } from "./drawing";

afterEach(() => {
  undraw();
  vi.restoreAllMocks();
  vi.useRealTimers();
});
