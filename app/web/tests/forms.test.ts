import { expect, test } from "vitest";
import {
  blank,
  check,
  choicesOf,
  readyOf,
  resolve,
  type Schema,
  schemaOf,
  seedOf,
  Unreadable,
  variantsOf,
} from "../src/forms/schema.js";

const choices = (schema: Schema | undefined) => choicesOf(schema)?.map(({ label, value }) => [label, value]) ?? null;
const asked = (more: Record<string, unknown>) => ({
  id: "q",
  reason: "tool_approval",
  message: null,
  tool_call_id: null,
  response_schema: null,
  ...more,
});

test("answers for one click are made from the schema", () => {
  expect(choices({ type: "boolean" })).toEqual([
    ["Yes", true],
    ["No", false],
  ]);
  expect(choices({ enum: ["red", 2] })).toEqual([
    ["red", "red"],
    ["2", 2],
  ]);
  expect(choices({ type: "object", properties: { ok: { type: "boolean" } } })).toEqual([
    ["Yes", { ok: true }],
    ["No", { ok: false }],
  ]);
  expect(
    choices({ type: "object", properties: { confirmed: { type: "boolean" }, payload: {} }, required: ["confirmed"] }),
  ).toEqual([
    ["Yes", { confirmed: true }],
    ["No", { confirmed: false }],
  ]);
  expect(choices({ type: "object", properties: { a: { type: "string" }, b: { type: "integer" } } })).toBeNull();
  expect(choices(undefined)).toBeNull();
});

const BOOKING: Schema = {
  type: "object",
  properties: {
    name: { type: "string", minLength: 2 },
    seats: { type: "integer", minimum: 1 },
    meal: { type: "boolean" },
    stops: { type: "array", items: { type: "string" } },
    note: { type: "string", default: "none" },
  },
  required: ["name", "seats"],
};

test("a form begins with what the schema says, and leaves out what is not filled in", () => {
  expect(blank(BOOKING, BOOKING)).toEqual({ meal: false, stops: [], note: "none" });
});

test("an answer is checked before it is sent", () => {
  expect([...check({ meal: false }, BOOKING).keys()].sort()).toEqual(["/name", "/seats"]);
  expect([...check({ name: "x", seats: 0 }, BOOKING).keys()].sort()).toEqual(["/name", "/seats"]);
  expect(check({ name: "Ann", seats: 1.5 }, BOOKING).has("/seats")).toBe(true);
  expect(check({ name: "Ann", seats: 2, stops: ["Brno", 3] }, BOOKING).has("/stops/1")).toBe(true);
  expect(check({ name: "Ann", seats: 2 }, BOOKING).size).toBe(0);
  expect(check({ name: new Unreadable("{"), seats: 2 }, BOOKING).get("/name")).toBe("That is not valid JSON.");
  expect(check(undefined, BOOKING).has("")).toBe(true);
});

test("a reference is followed within its document, and never to a prototype", () => {
  const root: Schema = { $defs: { name: { type: "string" }, loop: { $ref: "#/$defs/loop" } } };
  expect(resolve({ $ref: "#/$defs/name", title: "Name" }, root)).toEqual({ type: "string", title: "Name" });
  expect(resolve({ $ref: "#/__proto__/x" }, root)).toEqual({});
  expect(resolve({ $ref: "#/$defs/loop" }, root)).toBeDefined();
});

test("a batched approval becomes one decision for each call", () => {
  const value = {
    action_requests: [
      { name: "add", args: { a: 1 } },
      { name: "drop", args: {} },
    ],
    review_configs: [{ allowed_decisions: ["approve", "edit"] }, { allowed_decisions: ["approve", "reject"] }],
  };
  const schema = schemaOf(asked({ value })) as Schema;
  const all = { decisions: [{ type: "approve" }, { type: "approve" }] };
  expect(readyOf(schema)).toEqual([{ label: "Approve all 2", value: all }]);
  const answer = {
    decisions: [
      { type: "edit", edited_action: { name: "add", args: { a: 5 } } },
      { type: "reject", message: "no" },
    ],
  };
  expect(check(answer, schema).size).toBe(0);
  expect(check({ decisions: [{ type: "reject" }, { type: "reject" }] }, schema).size).toBeGreaterThan(0);
  expect(check({ decisions: [{ type: "approve" }] }, schema).size).toBeGreaterThan(0);
});

test("an edit begins with the arguments that were proposed", () => {
  const question = asked({ value: { type: "tool_approval", name: "add", args: { a: 1 } } });
  const edit: Schema = {
    type: "object",
    properties: {
      type: { const: "edit" },
      edited_action: { type: "object", properties: { name: { const: "add" }, args: {} } },
    },
  };
  expect(blank(edit, edit, seedOf(question))).toEqual({ type: "edit", edited_action: { name: "add", args: { a: 1 } } });
  expect(variantsOf({ anyOf: [{ type: "string" }, { type: "null" }] }, {})).toEqual([{ type: "string" }]);
});
