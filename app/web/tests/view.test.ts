import { expect, test } from "vitest";
import {
  apply,
  type Envelope,
  initial,
  type Item,
  patched,
  referred,
  resolved,
  type View,
} from "../src/client/runcast.js";
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

const drawn = (more: Record<string, unknown>): Envelope =>
  envelope("agent.activity", { message_id: "s", activity_type: "a2ui-surface", ...more });
const add = (value: number): Record<string, unknown> => ({ patch: [{ op: "add", path: "/list/-", value }] });

test("an activity is one row, replaced and patched", () => {
  const view = shown(started(), drawn({ content: { list: [1] } }), drawn(add(2)));
  expect(rows(view, "activity")).toMatchObject([{ id: "s", name: "a2ui-surface", content: { list: [1, 2] } }]);
  apply(view, drawn({ content: { list: [] }, replace: false }));
  expect(rows(view, "activity")).toMatchObject([{ content: { list: [1, 2] } }]);
  apply(view, drawn({ content: { list: [] } }));
  expect(rows(view, "activity")).toMatchObject([{ content: { list: [] } }]);
  expect(rows(shown(started(), drawn(add(1))), "activity")).toEqual([]);
});

test("an activity by reference ends as the server has it, whenever it is fetched", () => {
  const events = [drawn({ content: { list: [0] } }), drawn({ by_reference: true }), drawn(add(2)), drawn(add(3))];
  const states: unknown[] = [{ list: [0] }, { list: [1] }];
  for (const each of events.slice(2)) states.push(patched(states.at(-1), each.payload["patch"] as never));
  for (let asked = 2; asked <= events.length; asked += 1)
    for (let answered = asked; answered <= events.length; answered += 1) {
      const view = shown(started(), ...events.slice(0, asked));
      const item = referred(view) as Item;
      expect(item).toBeDefined();
      for (const each of events.slice(asked, answered)) apply(view, each);
      resolved(view, item, { content: states[asked - 1] }); // as the log was when it was asked
      for (const each of events.slice(answered)) apply(view, each);
      for (let left = referred(view); left !== undefined; left = referred(view))
        resolved(view, left, { content: states.at(-1) });
      expect(rows(view, "activity")).toMatchObject([{ content: states.at(-1), wanted: null }]);
    }
});

test("an activity that comes whole needs nothing that was fetched, and one that is gone is asked for once", () => {
  const view = shown(started(), drawn({ by_reference: true }));
  const item = referred(view) as Item;
  apply(view, drawn({ content: { new: true } }));
  resolved(view, item, { content: { old: true } });
  expect(rows(view, "activity")).toMatchObject([{ content: { new: true } }]);
  const lost = shown(started(), drawn({ by_reference: true }));
  resolved(lost, referred(lost) as Item, null);
  expect(referred(lost)).toBeUndefined();
});

test("an annotation replaces the one of its id, and is taken back", () => {
  const note = (id: string, payload: unknown): Envelope =>
    envelope("agent.annotation", { id, metaType: "tag", payload });
  const view = shown(started(), note("a", { n: 1 }), note("__proto__", { n: 2 }), note("a", { n: 3 }));
  expect(Object.values(view.annotations).map(({ payload }) => payload)).toEqual([{ n: 2 }, { n: 3 }]);
  apply(view, note("a", null));
  expect(Object.keys(view.annotations)).toEqual(["__proto__"]);
});
