// `/runcast.js`, `/reader.js` and `/runcast-thread.js`: one ES module each, without dependencies. The fold is compiled
// alone only by the test that holds it to Python's. `agui` is for npm alone: it extends what its peers export.
import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

const ENTRIES: Record<string, string> = {
  runcast: "src/client/runcast.ts",
  reader: "src/client/reader.ts",
  "runcast-thread": "src/element.tsx",
  fold: "src/fold/conversation.ts",
  agui: "src/agui/index.ts",
};

export default defineConfig(({ mode }) => ({
  define: { "process.env.NODE_ENV": '"production"' },
  plugins: [preact({ devToolsEnabled: false })],
  build: {
    outDir: "../runcast/app/page",
    emptyOutDir: false,
    target: "es2022",
    minify: mode === "runcast-thread", // the others are read by people
    lib: { entry: ENTRIES[mode] ?? mode, formats: ["es"], fileName: () => `${mode}.js` },
    rolldownOptions: { external: /^(@ag-ui|rxjs)/, output: { codeSplitting: false } },
  },
}));
