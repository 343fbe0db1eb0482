// JSON Patch: a patch holds as a whole or changes nothing. Pointers that name a prototype are refused, as by the official
// client and by `json_patch.py`.
//
// The document is never changed: along the path of an operation containers are copied, the rest is shared. Written values
// are cloned.
import { COPIES, type Size, added, fits, measured, remember } from "./patch_budget.js";
import type { Operation } from "./types.js";

type Json = unknown;
type Container = Json[] | Record<string, Json>;

/** A document after a JSON Patch, or as it was when an operation does not fit. */
export function patched(document: Json, operations: Operation[]): Json {
  const { value } = attempt(document, operations);
  return value;
}

/** The same, and whether the patch applied; `error` is a PatchTooLarge where the result would be too large. */
export function attempt(document: Json, operations: Operation[]): { value: Json; applied: boolean; error: unknown } {
  try {
    const grown = fits(document, operations);
    const copied: Size = { nodes: 0, characters: 0, depth: 0 };
    const value = operations.reduce((root, operation) => one(root, operation, copied), document);
    remember(value, added(grown, copied));
    return { value, applied: true, error: null };
  } catch (error) {
    return { value: document, applied: false, error };
  }
}

function one(root: Json, { op, path, from, value }: Operation, copied: Size): Json {
  switch (op) {
    case "test":
      // The official client calls the method of that name to compare objects, and fails.
      if (JSON.stringify(value ?? null).includes('"hasOwnProperty":')) throw new Error("it cannot be compared");
      if (!same(tokens(path).reduce(child, root), value)) throw new Error("the test failed");
      return root;
    case "move":
    case "copy": {
      const source = tokens(from ?? "");
      const moved = source.reduce(child, root);
      if (op === "move" && path.startsWith(`${from}/`)) throw new Error("no value moves into itself");
      if (op === "copy") measured(moved, COPIES, copied);
      const rest = op === "move" ? at(root, source, "remove", null) : root;
      return at(rest, tokens(path), "add", moved);
    }
    case "remove":
      return at(root, tokens(path), op, null);
    case "add":
    case "replace":
      return at(root, tokens(path), op, structuredClone(value));
    default:
      throw new Error("no such operation");
  }
}

/** The document with one place changed. */
function at(node: Json, path: string[], op: "add" | "remove" | "replace", value: Json): Json {
  const [token, ...rest] = path;
  if (token === undefined) return op === "remove" ? null : value;
  if (rest.length > 0) return put(node, token, at(child(node, token), rest, op, value));
  if (Array.isArray(node)) {
    const end = op === "add" ? node.length : node.length - 1;
    const index = token === "-" && op === "add" ? node.length : /^(0|[1-9]\d*)$/.test(token) ? Number(token) : -1;
    if (index < 0 || index > end) throw new Error("no such index");
    return op === "remove" ? node.toSpliced(index, 1) : node.toSpliced(index, op === "add" ? 0 : 1, value);
  }
  if (op !== "add") child(node, token);
  if (op !== "remove") return put(node, token, value);
  const { [token]: _, ...kept } = container(node) as Record<string, Json>;
  return kept;
}

function put(node: Json, token: string, value: Json): Container {
  const copy = (Array.isArray(node) ? [...(node as Json[])] : { ...container(node) }) as Record<string, Json>;
  copy[token] = value;
  return copy;
}

function container(node: Json): Container {
  if (node === null || typeof node !== "object") throw new Error("no container");
  return node as Container;
}

function tokens(pointer: string): string[] {
  const read = pointer
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  if (read.some((token, n) => token === "__proto__" || (token === "prototype" && read[n - 1] === "constructor")))
    throw new Error("it would change a prototype");
  return read;
}

/** What stands under a name in a document itself: paths come from agents, and no prototype is part of a document. */
function child(node: Json, token: string): Json {
  if (!Object.hasOwn(container(node), token) || (Array.isArray(node) && token === "length"))
    throw new Error("nothing is there");
  return (node as Record<string, Json>)[token];
}

/** Whether two JSON values are equal; the order of an object's keys does not matter. */
export function same(one: Json, other: Json): boolean {
  if (one === other) return true;
  if (one === null || other === null || typeof one !== "object" || typeof other !== "object") return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every(
    (name) =>
      Object.hasOwn(other, name) && same((one as Record<string, Json>)[name], (other as Record<string, Json>)[name]),
  );
}
