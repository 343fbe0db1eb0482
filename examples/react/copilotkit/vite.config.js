// In a project of your own `runcast/agui` is the npm package; here it is compiled from this repository.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  resolve: {
    alias: { "runcast/agui": fileURLToPath(new URL("../../../app/web/src/agui/index.ts", import.meta.url)) },
    dedupe: ["@ag-ui/client", "rxjs"],
  },
  build: { chunkSizeWarningLimit: 10_000 },
});
