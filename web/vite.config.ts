/** Builds the page into the Python package, with hashed names and nothing inlined, as a strict content security policy
 * requires. The development server proxies the API of a running `pendula serve`. */

import { defineConfig } from "vitest/config";

const SERVER = "http://127.0.0.1:8765";
// The server rejects foreign origins, so the proxy sends the server's own origin.
const proxy = { target: SERVER, changeOrigin: true, headers: { origin: SERVER } };

export default defineConfig({
  build: {
    outDir: "../src/pendula/server/page",
    emptyOutDir: true,
    // The first versions with `light-dark()`; older targets would need every colour twice.
    target: ["chrome123", "firefox120", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Each scheduler page is a separate chunk; its entry file is called `Scheduler`.
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
    proxy: { "/api": proxy, "/healthz": proxy, "/readyz": proxy },
  },
  test: {
    include: ["*.test.ts", "src/**/*.test.{ts,tsx}"],
    css: true,
    // Test files share a thread and its document, which is five times faster; tests clean up after themselves.
    pool: "threads",
    isolate: false,
    setupFiles: ["src/testing/setup.ts"],
  },
});
