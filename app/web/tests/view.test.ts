import { expect, test } from "vitest";
import { apply, type Envelope, initial, type Item, type View } from "../src/client/runcast.js";
import { chunk, ended, envelope, started } from "./envelopes.js";

const shown = (...envelopes: Envelope[]): View => envelopes.reduce(apply, initial("t"));
const rows = (view: View, kind: string): Item[] => view.items.filter((item) => item.kind === kind);

test("chunks of a message become one row", () => {
  const view = shown(started(), chunk("m", "Hello "), chunk("m", "world", { is_complete: true }), ended("completed"));
  expect(rows(view, "text")).toMatchObject([{ text: "Hello world", complete: true }]);
  expect(view.status).toBe("completed");
});

test("a row that changes is another object, the others stay as they are", () => {
  const view = shown(started(), chunk("a", "one"), chunk("b", "two"));
  const [one, two] = rows(view, "text");
  apply(view, chunk("b", "!"));
  expect(rows(view, "text")[0]).toBe(one);
  expect(rows(view, "text")[1]).not.toBe(two);
});

test("a step's second attempt strikes out what the first had emitted", () => {
  const step = (attempt: number): Envelope =>
    envelope("agent.step.started", { step_number: 1, step_name: "write", attempt });
  const view = shown(
    started(),
    step(1),
    chunk("a", "bad", { step_number: 1 }),
    step(2),
    chunk("b", "good", { step_number: 1 }),
  );
  expect(rows(view, "text").map((each) => [each.text, each.superseded ?? false])).toEqual([
    ["bad", true],
    ["good", false],
  ]);
  expect(rows(view, "step").map((each) => each.state)).toEqual(["retried", "running"]);
});

test("a run without an end is cut short when the next one starts", () => {
  const call = envelope("agent.tool.started", { tool_name: "search", tool_call_id: "c" });
  const view = shown(started("r1"), call, chunk("m", "half"), started("r2", 2));
  expect(view.runs["r1"]?.status).toBe("cut short");
  expect(rows(view, "tool")[0]?.state).toBe("cut short");
  expect(rows(view, "text")[0]).toMatchObject({ superseded: true, complete: true });
});

test("text replaced by nothing is struck out, by other text replaced", () => {
  const view = shown(started(), chunk("m", "first"), chunk("m", "second", { replace: true }));
  expect(rows(view, "text").map((each) => each.text)).toEqual(["second"]);
  apply(view, chunk("m", "", { replace: true }));
  expect(rows(view, "text")).toMatchObject([{ text: "second", superseded: true }]);
});

test("tokens are the run's own at its end, until then its steps'", () => {
  const usage = { prompt: 3, completion: 4, total: 7 };
  const view = shown(started(), envelope("agent.step.completed", { step_number: 1, usage }));
  expect(view.usage).toEqual(usage);
  apply(view, envelope("agent.status", { status: "completed", usage: { prompt: 5, completion: 5, total: 10 } }));
  expect(view.usage.total).toBe(10);
});
