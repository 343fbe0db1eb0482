// How much a JSON Patch may create, counted before anything is created. The limits are those of `json_patch.py`.
import type { Operation } from "./types.js";

/** A patch that would create more than a patch or a document may hold. */
export class PatchTooLarge extends Error {}

/** The size of a JSON value: its values, its characters, and how deep it nests. */
export interface Size {
  nodes: number;
  characters: number;
  depth: number;
}

/** A patch may copy so much: `copy` alone makes more than its own size, and nested in itself it doubles each time. */
export const COPIES: Size = { nodes: 20_000, characters: 2 ** 20, depth: 256 };
// A document may not grow beyond this by patches, and is measured again after this growth.
const DOCUMENT: Size = { nodes: 1_000_000, characters: 2 ** 26, depth: 250 };
const SLACK: Size = { nodes: DOCUMENT.nodes / 16, characters: DOCUMENT.characters / 16, depth: DOCUMENT.depth };

const growth = new WeakMap<object, Size>(); // of a document, by patches since it was measured

/** The growth of a document with this patch. Throws PatchTooLarge when it would be too large. */
export function fits(document: unknown, operations: Operation[]): Size {
  const size: Size = { nodes: 0, characters: 0, depth: 0 };
  let rise = 0;
  for (const { op, path, from, value } of operations) {
    const levels = path.split("/").length - 1;
    if (op === "add" || op === "replace") {
      const written = measured(value, DOCUMENT);
      size.nodes += written.nodes;
      size.characters += written.characters;
      size.depth = Math.max(size.depth, levels + written.depth);
    } else if (op === "move" || op === "copy") {
      rise += Math.max(0, levels - ((from ?? "").split("/").length - 1));
      size.nodes += op === "copy" ? 1 : 0; // at least; it is measured when it is made
    }
  }
  const grown = added(isObject(document) ? growth.get(document) : undefined, size);
  if (rise === 0 && (size.nodes === 0 || within(grown, SLACK))) return grown;
  const whole = added(measured(document, DOCUMENT), size);
  if (!within({ ...whole, depth: whole.depth + rise }, DOCUMENT)) throw tooLarge(DOCUMENT);
  return size;
}

/** Keep the growth of a patched document. */
export function remember(document: unknown, size: Size): void {
  if (isObject(document)) growth.set(document, size);
}

/** The size of a value, added to `size`. Throws PatchTooLarge as soon as that is over `most`. */
export function measured(value: unknown, most: Size, size: Size = { nodes: 0, characters: 0, depth: 0 }): Size {
  let depth = 0;
  for (let level = [value]; level.length > 0;) {
    const below: unknown[] = [];
    size.nodes += level.length;
    for (const each of level) size.characters += look(each, below);
    depth += below.length > 0 ? 1 : 0;
    if (!within({ ...size, depth }, most)) throw tooLarge(most);
    level = below;
  }
  size.depth = Math.max(size.depth, depth);
  return size;
}

/** The characters of one value; what it holds goes to `below`. */
function look(value: unknown, below: unknown[]): number {
  if (typeof value === "string") return value.length;
  if (!isObject(value)) return 0;
  let characters = 0;
  for (const [name, item] of Object.entries(value)) {
    below.push(item);
    if (!Array.isArray(value)) characters += name.length;
  }
  return characters;
}

/** The sum of two sizes. */
export function added(one: Size | undefined, other: Size): Size {
  if (one === undefined) return other;
  return {
    nodes: one.nodes + other.nodes,
    characters: one.characters + other.characters,
    depth: Math.max(one.depth, other.depth),
  };
}

function within(size: Size, most: Size): boolean {
  return size.nodes <= most.nodes && size.characters <= most.characters && size.depth <= most.depth;
}

function tooLarge(most: Size): PatchTooLarge {
  return new PatchTooLarge(
    `the patch would make more than ${most.nodes} values, ${most.characters} characters or ${most.depth} levels; send a snapshot instead`,
  );
}

function isObject(value: unknown): value is object {
  return value !== null && typeof value === "object";
}
