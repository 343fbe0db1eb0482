import { expect, test } from "vitest";
import { apply, initial } from "../src/client/runcast.js";
import { statesOf } from "../src/inspector/AgentGraph.js";
import { layout } from "../src/inspector/layout.js";
import { spansOf } from "../src/inspector/spans.js";
import type { AgentRow } from "../src/state/api.js";
import { costOf, money } from "../src/state/cost.js";
import { lostOf } from "../src/state/demo.js";
import { accepted, LARGEST, refusal } from "../src/state/files.js";
import { whole } from "../src/state/session.js";
import { asked, Values } from "../src/state/values.js";
import { envelope, started } from "./envelopes.js";

test("what a model says without anything in between is one call of it", () => {
  const view = initial("t");
  const at = (second: number, each: ReturnType<typeof envelope>) =>
    apply(view, { ...each, timestamp: new Date(1000 * second).toISOString() });
  const chunk = (kind: string, id: string, text: string, done: boolean) =>
    envelope(`agent.${kind}.chunk`, { message_id: id, chunk: text, is_complete: done, step_number: 1 });
  at(0, started("r1"));
  at(1, envelope("agent.step.started", { step_number: 1, step_name: "model" }));
  at(2, chunk("reasoning", "m0", "hm", true));
  at(3, chunk("stream", "m1", "a ", false));
  at(5, chunk("stream", "m1", "b", true));
  at(6, envelope("agent.tool.started", { tool_call_id: "c", tool_name: "look" }));
  at(8, chunk("stream", "m2", "c ", false));
  const models = spansOf(view.items, view.runs, 11_000).filter(({ kind }) => kind === "model");
  expect(models.map(({ start, end, state }) => [start, end, state])).toEqual([
    [2000, 5000, "done"],
    [8000, 11_000, "running"],
  ]);
});

test("tokens cost what the longest fitting name of a model says", () => {
  const prices = { "gpt-5": { input: 1, output: 10 }, "gpt-5-mini": { input: 0.1, output: 1, cached: 0.01 } };
  const options = { prices, currency: "$", demo: false };
  const usage = (model: string) => [
    { usage: [{ model, inputTokens: 1e6, outputTokens: 1e6, cachedInputTokens: 5e5 }] },
  ];
  expect(costOf(usage("gpt-5-2026-01-01"), options)).toEqual({ amount: 11, unpriced: [] });
  expect(costOf(usage("gpt-5-mini"), options)?.amount).toBeCloseTo(0.05 + 0.005 + 1);
  expect(costOf([...usage("gpt-5"), ...usage("other")], options)).toEqual({ amount: 11, unpriced: ["other"] });
  expect(costOf(usage("gpt-50"), options)).toBe(null);
  expect([money(12.345, "$"), money(0.00123, "€"), money(0, "$"), money(1e-9, "$")]).toEqual([
    "$12.35",
    "€0.0012",
    "$0.00",
    "$<0.000001",
  ]);
});

test("an event that no envelope accounts for is counted as lost", () => {
  const chain = (...pairs: [number, number][]) =>
    pairs.map(([prev, seq]) => ({ ...envelope("agent.custom", {}), prev, seq }));
  expect(lostOf([])).toBe(0);
  expect(lostOf(chain([0, 3], [3, 4], [4, 9]))).toBe(0);
  expect(lostOf(chain([0, 3], [3, 3], [2, 5], [5, 6]))).toBe(0); // parts of one entry, and a merged one that overlaps
  expect(lostOf(chain([0, 3], [5, 6], [9, 10]))).toBe(5);
  expect(lostOf(chain([40, 43], [43, 44]))).toBe(0); // opened at a thread's newest runs
});

test("a graph is drawn from the top, each node below what leads to it, with ways back", () => {
  const node = (id: string) => ({ id, name: id, kind: "node" });
  const { boxes, lines, width, height } = layout({
    nodes: ["end", "b", "a", "start"].map(node),
    edges: [
      { source: "start", target: "a" },
      { source: "a", target: "b", conditional: true, label: "yes" },
      { source: "b", target: "a" },
      { source: "a", target: "end" },
      { source: "b", target: "end" },
      { source: "ghost", target: "a" },
    ],
  });
  const y = Object.fromEntries(boxes.map((box) => [box.id, box.y]));
  expect([y["start"], y["a"], y["b"], y["end"]]).toEqual([20, 94, 168, 242]);
  expect(lines).toHaveLength(5);
  expect(lines.filter(({ conditional }) => conditional).map(({ label }) => label)).toEqual(["yes"]);
  for (const { x, width: own } of boxes) expect(x - own / 2 >= 0 && x + own / 2 <= width).toBe(true);
  expect(height).toBeGreaterThan(242);
  expect(layout({ nodes: [], edges: [] }).boxes).toEqual([]);
});

test("a node is lit by the step, subagent or call of its name in the newest run", () => {
  const view = initial("t");
  apply(view, started("r1"));
  apply(view, { ...envelope("agent.step.started", { step_number: 1, step_name: "plan" }), execution_id: "r1" });
  expect([...statesOf(view.items, "r1")]).toEqual([["plan", "running"]]);
  expect([...statesOf(view.items, "r2")]).toEqual([]);
});

test("a file is refused with the reason", () => {
  const agent: AgentRow = { name: "a", capabilities: { multimodal: { input: { image: true } } } };
  const any: AgentRow = { name: "b", capabilities: { multimodal: { input: { file: true } } } };
  const zip = { name: "x.zip", type: "application/zip", size: 1 };
  const png = { name: "x.png", type: "image/png", size: 10 };
  expect(refusal(png, agent, 0)).toBe(null);
  expect(refusal(zip, agent, 0)).toContain("takes images.");
  expect(refusal(png, undefined, 0)).toContain("takes no files.");
  expect(refusal(zip, any, 0)).toBe(null);
  expect(refusal(png, agent, LARGEST - 9)).toContain("at most 5 MB");
  expect([accepted(agent), accepted(any)]).toEqual(["image/*", ""]);
});

test("who goes on from a moment gets no call without a result, and no thought", () => {
  const call = (id: string) => ({ id, type: "function" as const, function: { name: "f", arguments: "{}" } });
  const found = whole([
    { id: "u", role: "user", content: "hi" },
    { id: "t", role: "reasoning", content: "hm" },
    { id: "a", role: "assistant", content: "both", toolCalls: [call("c1"), call("c2")] },
    { id: "r", role: "tool", toolCallId: "c1", content: "1" },
    { id: "b", role: "assistant", toolCalls: [call("c3")] },
    { id: "d", role: "assistant", content: "said", toolCalls: [call("c4")] },
  ]);
  expect(found.map(({ id, toolCalls }) => [id, toolCalls?.map((each) => each.id)])).toEqual([
    ["u", undefined],
    ["a", ["c1"]],
    ["r", undefined],
    ["d", undefined],
  ]);
});

test("an agent's form is sent where the host takes it, and only when it fits", () => {
  const schema = { type: "object", properties: { user: { type: "string", minLength: 1 } }, required: ["user"] };
  const agent: AgentRow = {
    name: "a",
    schemas: { context: { schema, place: "forwardedProps.context" }, state: { schema, place: null } },
  };
  const [form, ...others] = asked(agent);
  if (form === undefined) throw new Error("there is a form");
  expect([form.place, others]).toEqual(["context", []]);
  const values = new Values();
  const fresh = { thread: null } as never;
  expect(values.forwarded(agent, fresh)).toBe(null);
  expect([...(values.wrong.value.get("context") ?? [])]).toEqual([["/user", "Fill this in."]]);
  values.change(agent, form, { user: "ada" });
  expect(values.forwarded(agent, fresh)).toEqual({ forwarded: { context: { user: "ada" } } });
  expect(new Values().forwarded(agent, { thread: "t1" } as never)).toBe(null); // it cannot be left out there either
  expect(values.forwarded(undefined, fresh)).toEqual({});
});
