// The page: one small first load, with code colours fetched when the first code is drawn.
import preact from "@preact/preset-vite";
import { defineConfig } from "vite";

export default defineConfig({
  base: "./",
  plugins: [preact({ devToolsEnabled: false })],
  build: {
    outDir: "../runcast/app/page",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
