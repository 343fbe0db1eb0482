import { expect, test } from "vitest";
import { apply, initial } from "../src/client/runcast.js";
import { depths } from "../src/conversation/lanes.js";
import { levelsOf, matchesIn } from "../src/parts/JsonTree.js";
import { diff } from "../src/inspector/diff.js";
import { placed } from "../src/inspector/graph.js";
import { spansOf } from "../src/inspector/spans.js";
import type { RunRow } from "../src/state/api.js";
import { asMarkdown } from "../src/state/export.js";
import { titleOf } from "../src/state/asks.js";
import { pendingCalls } from "../src/state/pending.js";
import { ago, duration, headingOf, stateOf } from "../src/state/words.js";
import { envelope, started } from "./envelopes.js";

const run = (run_id: string, parent: string | null): RunRow => ({
  run_id,
  parent,
  edge: "continue",
  attempt: 1,
  status: "completed",
  first_seq: 1,
  last_seq: 2,
  started_at: 0,
  ended_at: 1,
  terminal: null,
  usage: [],
  pruned: false,
});

test("a branch gets a column of its own, what goes on stays in its column", () => {
  const places = placed([run("a", null), run("b", "a"), run("c", "a"), run("d", "c"), run("e", "b"), run("f", null)]);
  expect(places.map(({ column }) => column)).toEqual([0, 0, 1, 1, 0, 2]);
});

test("a difference names the places that changed", () => {
  expect(diff({ a: 1, b: [1, 2], "x/y": 1 }, { a: 2, b: [1, 2, 3], c: null })).toEqual([
    { kind: "changed", path: "/a", before: 1, after: 2 },
    { kind: "added", path: "/b/2", after: 3 },
    { kind: "removed", path: "/x~1y", before: 1 },
    { kind: "added", path: "/c", after: null },
  ]);
  expect(diff({ a: [1] }, { a: [1] })).toEqual([]);
});

test("steps and calls become spans, and a wait for a person one too", () => {
  const view = initial("t");
  const at = (second: number, each: ReturnType<typeof envelope>) =>
    apply(view, { ...each, timestamp: new Date(1000 * second).toISOString() });
  at(0, started("r1"));
  at(1, envelope("agent.step.started", { step_number: 1, step_name: "plan" }));
  at(3, envelope("agent.step.completed", { step_number: 1, duration_ms: 2000 }));
  at(4, envelope("agent.status", { status: "interrupted" }));
  at(64, started("r2"));
  expect(spansOf(view.items, view.runs, 70_000).map(({ kind, start, end }) => [kind, start, end])).toEqual([
    ["run", 0, 4000],
    ["step", 1000, 3000],
    ["wait", 4000, 64_000],
    ["run", 64_000, 70_000],
  ]);
});

test("rows of a subagent lie below it, and of its subagent below that", () => {
  const row = (key: string, more: object) => ({ kind: "text" as const, key, ...more });
  const found = depths([
    { kind: "subagent", key: "s", id: "one", lane: null },
    row("a", { lane: "one" }),
    { kind: "subagent", key: "t", id: "two", lane: "one" },
    row("b", { lane: "two" }),
    row("c", {}),
  ]);
  expect(["s", "a", "t", "b", "c"].map((key) => found.get(key) ?? 0)).toEqual([0, 1, 1, 2, 0]);
});

test("a conversation as Markdown keeps code that holds fences", () => {
  const text = asMarkdown("t", [
    { id: "1", role: "user", content: "hi" },
    { id: "2", role: "tool", content: "```\nx\n```" },
  ]);
  expect(text).toContain("## You\n\nhi");
  expect(text).toContain("````\n```\nx\n```\n````");
});

test("a thread is named by its first message", () => {
  const event = {
    type: "RUN_STARTED",
    runId: "r",
    input: { messages: [{ id: "u", role: "user", content: "Plan a trip\nto Vienna" }] },
  };
  expect(titleOf(event)).toBe("Plan a trip");
  expect(titleOf({ type: "RUN_STARTED", runId: "r" })).toBeNull();
});

test("states and times are worded once", () => {
  expect([stateOf("truncated").label, stateOf("cut short").label, stateOf(null).label]).toEqual([
    "Cut short",
    "Cut short",
    "No run yet",
  ]);
  expect([duration(12), duration(1234), duration(65_000), duration(3_700_000)]).toEqual([
    "12 ms",
    "1.2 s",
    "1 min 5 s",
    "1 h 1 min",
  ]);
  expect(ago(0, 120_000)).toBe("2 min ago");
});

test("calls that are begun and not ended are pending, with what is written of their arguments", () => {
  const entry = (type: string, more: object = {}) => ({ seq: 1, event: { type, toolCallId: "a", ...more } });
  const begun = [entry("TOOL_CALL_START", { toolCallName: "search" }), entry("TOOL_CALL_ARGS", { delta: '{"q' })];
  expect(pendingCalls(begun)).toEqual([{ id: "a", name: "search", args: '{"q' }]);
  expect(pendingCalls([...begun, entry("TOOL_CALL_END")])).toEqual([]);
  expect(pendingCalls([entry("TOOL_CALL_ARGS", { delta: "x" })])).toEqual([]);
});

test("words are found in the keys and texts of a value", () => {
  const value = { train: "EN 406", stops: [{ name: "Brno" }, { name: "Vienna" }] };
  expect([...matchesIn(value, "brno").keys()]).toEqual(["/stops/0/name"]);
  expect([...matchesIn(value, "NAME").keys()]).toEqual(["/stops/0/name", "/stops/1/name"]);
  expect(matchesIn(value, " ").size).toBe(0);
});

test("a question is open as deep as it can be read, and always its first two levels", () => {
  const steps = [1, 2, 3].map((at) => ({ description: `step ${at}`, status: "enabled" }));
  expect(levelsOf({ steps })).toBe(4);
  expect(levelsOf({ steps: Array.from({ length: 60 }, () => steps[0]) })).toBe(2);
  expect(levelsOf("text")).toBe(1);
});

test("a question without a message is no bare word of its framework", () => {
  expect(headingOf({ reason: "interrupt" })).toBe("The agent waits for your answer");
  expect(headingOf({ reason: "tool_call" })).toBe("tool_call");
  expect(headingOf({ reason: "interrupt", message: "Which?" })).toBe("Which?");
});
