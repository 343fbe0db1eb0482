// What a JSON Schema asks a person for: choices for one click, a first value, and what is wrong with an answer.
import { Validator, type Schema as Checked } from "@cfworker/json-schema";
import type { Interrupt } from "../client/runcast.js";

export type Schema = { [keyword: string]: unknown };

/** An answer for one click. */
export interface Choice {
  label: string;
  value: unknown;
}

/** What stands in a field and is no JSON: the answer cannot be sent. */
export class Unreadable {
  constructor(readonly text: string) {}
}

const isSchema = (value: unknown): value is Schema =>
  value !== null && typeof value === "object" && !Array.isArray(value);
export const propertiesOf = (schema: Schema): [string, Schema][] =>
  isSchema(schema["properties"])
    ? Object.entries(schema["properties"]).filter((each): each is [string, Schema] => isSchema(each[1]))
    : [];
export const requires = (schema: Schema, name: string): boolean =>
  Array.isArray(schema["required"]) && schema["required"].includes(name);

/** The schema itself, or the one in the same document that it points to. */
export function resolve(schema: Schema, root: Schema, depth = 0): Schema {
  const ref = schema["$ref"];
  if (typeof ref !== "string" || !ref.startsWith("#") || depth > 20) return schema;
  let found: unknown = root;
  for (const token of ref.split("/").slice(1)) {
    const name = decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~");
    found = isSchema(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return isSchema(found) ? resolve({ ...found, ...without(schema, "$ref") }, root, depth + 1) : without(schema, "$ref");
}

function without(schema: Schema, keyword: string): Schema {
  const { [keyword]: _, ...rest } = schema;
  return rest;
}

/** The shapes an answer may have, where it may have several; `null` is left to leaving the field out. */
export function variantsOf(schema: Schema, root: Schema): Schema[] | null {
  const given = schema["anyOf"] ?? schema["oneOf"];
  if (!Array.isArray(given)) return null;
  return given
    .filter(isSchema)
    .map((each) => resolve(each, root))
    .filter((each) => each["type"] !== "null");
}

/** What a schema is called on the page. */
export function labelOf(schema: Schema, root: Schema, fallback: string): string {
  const kind = propertiesOf(schema)
    .map(([, each]) => resolve(each, root)["const"])
    .find((each) => typeof each === "string");
  if (typeof kind === "string") return capital(kind);
  return typeof schema["title"] === "string" && schema["title"] !== "" ? schema["title"] : fallback;
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1).replaceAll("_", " ");

/** Answers for one click, where the schema leaves so few; null where something has to be filled in. */
export function choicesOf(given: Schema | null | undefined, root: Schema = given ?? {}): Choice[] | null {
  if (!given) return null;
  const schema = resolve(given, root);
  if (schema["type"] === "boolean")
    return [
      { label: "Yes", value: true },
      { label: "No", value: false },
    ];
  if (Array.isArray(schema["enum"])) return schema["enum"].map((value) => ({ label: String(value), value }));
  if ("const" in schema) return [{ label: capital(String(schema["const"])), value: schema["const"] }];
  const properties = schema["type"] === "object" || "properties" in schema ? propertiesOf(schema) : [];
  const needed = properties.length === 1 ? properties : properties.filter(([name]) => requires(schema, name));
  const [only, ...more] = needed;
  if (only === undefined || more.length > 0) return null;
  const [name, each] = only;
  return choicesOf(each, root)?.map((choice) => ({ ...choice, value: { [name]: choice.value } })) ?? null;
}

/** Whole answers that need nothing filled in, though others do: approving one call, or all of a batch. */
export function readyOf(schema: Schema): Choice[] {
  const list = propertiesOf(schema).find(([name]) => name === "decisions")?.[1];
  const tuple = Array.isArray(list?.["prefixItems"]) ? (list["prefixItems"] as Schema[]) : null;
  const count = tuple?.length ?? 1;
  return (variantsOf(tuple?.[0] ?? schema, schema) ?? []).filter(needsNothing).map((variant) => {
    const [label, value] = [labelOf(variant, schema, "Send"), blank(variant, schema)];
    return {
      label: count > 1 ? `${label} all ${count}` : label,
      value: tuple ? { decisions: tuple.map(() => value) } : value,
    };
  });
}

/** Whether every property of an object is given by its schema. */
export function needsNothing(schema: Schema): boolean {
  const properties = propertiesOf(schema);
  return properties.length > 0 && properties.every(([, each]) => "const" in each);
}

/** The value a form begins with: `seed` where there is one, else defaults; undefined is a field that was not filled in. */
export function blank(given: Schema, root: Schema, seed?: unknown): unknown {
  const schema = resolve(given, root);
  if ("const" in schema) return schema["const"];
  if (seed !== undefined && !isSchema(seed)) return seed;
  if (schema["type"] === "object" || "properties" in schema) {
    const start: Record<string, unknown> = isSchema(seed) ? { ...seed } : {};
    for (const [name, each] of propertiesOf(schema)) {
      const value = blank(each, root, isSchema(seed) ? seed[name] : undefined);
      if (value !== undefined) start[name] = value;
    }
    return start;
  }
  if (seed !== undefined) return seed;
  if ("default" in schema) return structuredClone(schema["default"]);
  if (schema["type"] === "array")
    return Array.isArray(schema["prefixItems"]) ? schema["prefixItems"].map((each: Schema) => blank(each, root)) : [];
  return schema["type"] === "boolean" ? false : undefined;
}

/** What is wrong with an answer, by JSON Pointer; empty where it can be sent. */
export function check(value: unknown, schema: Schema): Map<string, string> {
  const found = new Map<string, string>();
  unreadable(value, "", found);
  if (found.size > 0) return found;
  if (value === undefined) return new Map([["", "Fill this in."]]);
  try {
    const { errors } = new Validator(schema as Checked, "2020-12", false).validate(value);
    // The innermost come last: what is wrong with a part is more use than that something is wrong with the whole.
    for (const { instanceLocation, error, keyword } of errors) {
      if (["properties", "items", "prefixItems", "anyOf", "oneOf", "allOf", "$ref", "false"].includes(keyword))
        continue;
      const missing = keyword === "required" ? /property "(.*)"/.exec(error)?.[1] : undefined;
      const at = instanceLocation.replace(/^#/, "") + (missing === undefined ? "" : `/${missing}`);
      if (!found.has(at)) found.set(at, missing === undefined ? error : "Fill this in.");
    }
    if (errors.length > 0 && found.size === 0) found.set("", errors[0]?.error ?? "This does not fit.");
  } catch {
    return new Map(); // a schema that cannot be read checks nothing: the server has the last word
  }
  return found;
}

function unreadable(value: unknown, at: string, found: Map<string, string>): void {
  if (value instanceof Unreadable) found.set(at, "That is not valid JSON.");
  else if (value !== null && typeof value === "object")
    for (const [name, each] of Object.entries(value)) unreadable(each, `${at}/${name}`, found);
}

// ------------------------------------------------- approvals without a schema

interface ActionRequest {
  name: string;
  args: unknown;
  description?: string;
}

/** The schema of a question: its own, or the one that LangChain's batched approval means; null for free text. */
export function schemaOf(asked: Interrupt): Schema | null {
  if (asked.response_schema) return asked.response_schema;
  const requests = isSchema(asked.value) && "action_requests" in asked.value ? requestsOf(asked) : [];
  if (requests.length === 0) return null;
  const configs = ((asked.value as Schema)["review_configs"] ?? []) as { allowed_decisions?: string[] }[];
  const decisions = requests.map((request, index) => ({
    title: request.name,
    anyOf: (configs[index]?.allowed_decisions ?? ["approve", "reject"])
      .filter((each) => each in DECISIONS)
      .map((each) => DECISIONS[each]?.(request)),
  }));
  return {
    type: "object",
    properties: {
      decisions: {
        title: "Decisions",
        type: "array",
        prefixItems: decisions,
        minItems: decisions.length,
        maxItems: decisions.length,
      },
    },
    required: ["decisions"],
  };
}

/** The tool calls that a question is about, in LangChain's batched form and in the one for each call. */
export function requestsOf(asked: Interrupt): ActionRequest[] {
  const value = isSchema(asked.value) ? asked.value : {};
  const single = value["type"] === "tool_approval" && "args" in value ? [value] : undefined;
  const requests = value["action_requests"] ?? single;
  return Array.isArray(requests)
    ? (requests as unknown[]).filter(
        (each): each is ActionRequest & Schema => isSchema(each) && typeof each["name"] === "string",
      )
    : [];
}

const decision = (type: string, more: Record<string, Schema> = {}, required: string[] = []): Schema => ({
  type: "object",
  properties: { type: { const: type }, ...more },
  required: ["type", ...required],
});

const DECISIONS: Record<string, (request: ActionRequest) => Schema> = {
  approve: () => decision("approve"),
  edit: ({ name, args }) =>
    decision(
      "edit",
      {
        edited_action: {
          type: "object",
          properties: { name: { const: name }, args: { title: "Arguments", default: args } },
          required: ["name", "args"],
        },
      },
      ["edited_action"],
    ),
  reject: () => decision("reject", { message: { type: "string", title: "Reason" } }),
  respond: () => decision("respond", { message: { type: "string", title: "Answer for the tool" } }, ["message"]),
};

/** What a variant of an approval begins with: the arguments as they were proposed. */
export function seedOf(asked: Interrupt): unknown {
  const value = asked.value;
  return isSchema(value) && "args" in value && "name" in value
    ? { edited_action: { name: value["name"], args: value["args"] } }
    : undefined;
}
