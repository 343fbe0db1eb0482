// Applies patches by runcast.js and by the official client's library, and prints what came of each. Called by test_patches.py.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { attempt, PatchTooLarge } = await import(pathToFileURL(process.argv[2]));
const { applyPatch } = createRequire(process.argv[3])("fast-json-patch");

function ours(document, operations) {
  const { value, applied, error } = attempt(document, operations);
  if (applied) return { verdict: "applied", value };
  return { verdict: error instanceof PatchTooLarge ? "too large" : "refused", value };
}

/** The client's library puts written values into the document, so a later operation of the patch may make a circle. */
function theirs(document, operations) {
  try {
    const value = applyPatch(structuredClone(document), structuredClone(operations), true, false).newDocument;
    return { verdict: "applied", value: JSON.parse(JSON.stringify(value ?? null)) };
  } catch {
    return { verdict: "refused", value: document };
  }
}

for (const line of readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const { document, patch, bomb } = JSON.parse(line);
  console.log(JSON.stringify({ ours: ours(document, patch), theirs: bomb ? null : theirs(document, patch) }));
}
