/** How the page is built: into the Python package, with hashed names and nothing inlined, so that a strict content
 * security policy can serve it. The development server passes the API on to a running `pendula serve`. */

import { defineConfig } from "vitest/config";

const SERVER = "http://127.0.0.1:8765";
// The server refuses foreign origins; behind this proxy its own origin is the honest one.
const passOn = { target: SERVER, changeOrigin: true, headers: { origin: SERVER } };

export default defineConfig({
  build: {
    outDir: "../src/pendula/server/page",
    emptyOutDir: true,
    // The first versions with `light-dark()`; older targets would have every colour written twice.
    target: ["chrome123", "firefox120", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Every scheduler has its own chunk, which is fetched with it; all of them begin in a file called `Scheduler`.
    rolldownOptions: {
      output: {
        chunkFileNames: ({ facadeModuleId }) => {
          const scheduler = /schedulers\/(\w+)\/Scheduler\.tsx$/.exec(facadeModuleId ?? "")?.[1];
          return `assets/${scheduler === undefined ? "[name]" : `scheduler-${scheduler}`}-[hash].js`;
        },
      },
    },
  },
  server: {
    proxy: { "/api": passOn, "/healthz": passOn, "/readyz": passOn },
  },
  test: {
    include: ["*.test.ts", "src/**/*.test.{ts,tsx}"],
    css: true,
    // Files share a thread and its document, which takes a fifth of the time: a test leaves nothing behind.
    pool: "threads",
    isolate: false,
    setupFiles: ["src/testing/setup.ts"],
  },
});
