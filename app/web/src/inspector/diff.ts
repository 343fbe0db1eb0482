// What changed between two JSON values, as the places where they differ.
import { same } from "../client/patch.js";

export interface Change {
  kind: "added" | "removed" | "changed";
  path: string; // a JSON Pointer
  before?: unknown;
  after?: unknown;
}

type Container = Record<string, unknown>;
const inside = (value: unknown): value is Container => value !== null && typeof value === "object";
const escaped = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");

/** The changes that lead from one value to the other, outermost first. */
export function diff(before: unknown, after: unknown, path = ""): Change[] {
  if (same(before, after)) return [];
  if (!inside(before) || !inside(after) || Array.isArray(before) !== Array.isArray(after))
    return [{ kind: "changed", path, before, after }];
  const changes: Change[] = [];
  for (const name of Object.keys(before)) {
    const at = `${path}/${escaped(name)}`;
    if (Object.hasOwn(after, name)) changes.push(...diff(before[name], after[name], at));
    else changes.push({ kind: "removed", path: at, before: before[name] });
  }
  for (const name of Object.keys(after))
    if (!Object.hasOwn(before, name))
      changes.push({ kind: "added", path: `${path}/${escaped(name)}`, after: after[name] });
  return changes;
}
