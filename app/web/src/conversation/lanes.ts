// How deep a row lies: a subagent's rows are inside the row of the subagent, and so on.
import type { Item } from "../client/runcast.js";

/** The depth of each row that is not at the top, by its key. */
export function depths(rows: readonly Item[]): ReadonlyMap<string, number> {
  const lanes = new Map<string, number>(); // subagent -> depth of what it does
  const found = new Map<string, number>();
  for (const item of rows) {
    const depth = item.lane == null ? 0 : (lanes.get(item.lane) ?? 1);
    if (depth > 0) found.set(item.key, depth);
    if (item.kind === "subagent") lanes.set(item["id"] as string, depth + 1);
  }
  return found;
}
