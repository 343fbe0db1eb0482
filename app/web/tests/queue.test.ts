import { expect, test } from "vitest";
import { apply, initial, type Queued } from "../src/client/runcast.js";
import type { AgentRow, Api } from "../src/state/api.js";
import { CHOICES, Queue, unbegun, usual } from "../src/state/queue.js";
import { RequestFailed } from "../src/state/steady.js";
import { chunk, ended, envelope, started } from "./envelopes.js";

const waits = (run_id: string, text: string): Queued => ({
  run_id,
  text,
  on_busy: "queue",
  agent: "a",
  at: 1,
  files: 0,
});
const queued = (...messages: Queued[]) => envelope("agent.queued", { messages, count: messages.length });

test("what waits is as it was announced last, without what has begun", () => {
  const view = initial("t");
  apply(view, started("r1"));
  apply(view, queued(waits("r2", "two"), waits("r3", "three")));
  expect(view.queued.map(({ text }) => text)).toEqual(["two", "three"]);
  apply(view, ended("completed", "r1"));
  apply(view, started("r2"));
  expect(view.queued.map(({ text }) => text)).toEqual(["three"]);
  apply(view, queued());
  expect(view.queued).toEqual([]);
});

test("a message that was steered waits no more, and is shown once in the run, whichever way it comes", () => {
  const steered = envelope("agent.steered", { run_id: "r2", message_id: "m", text: "left", agent: "a", at: 2 });
  const first = [chunk("m", "le", { role: "user" }), chunk("m", "ft, please", { role: "user", is_complete: true })];
  for (const [order, text] of [
    [[steered], "left"],
    [[...first, steered], "left, please"],
    [[steered, ...first], "left, please"],
  ] as const) {
    const view = initial("t");
    apply(view, started("r1"));
    apply(view, queued(waits("r2", "left")));
    order.forEach((each) => apply(view, each));
    expect(view.queued).toEqual([]);
    expect(view.items.filter(({ kind }) => kind === "text")).toMatchObject([{ role: "user", text, complete: true }]);
  }
});

test("a message waits by itself where the host would refuse it", () => {
  const row = (on_busy?: AgentRow["on_busy"]): AgentRow => ({ name: "a", ...(on_busy ? { on_busy } : {}) });
  expect([undefined, row(), row("refuse"), row("steer")].map(usual)).toEqual(["queue", "queue", "queue", "steer"]);
  expect(CHOICES.map(({ value }) => value)).toEqual(["queue", "steer", "interrupt", "rollback"]);
});

test("what has begun does not wait, whatever an older list says", () => {
  const all = [waits("r1", "one"), waits("r2", "two")];
  const run = { id: "r1", status: "in_progress" as const, started: "", spent: { prompt: 0, completion: 0, total: 0 } };
  expect(unbegun(all, {})).toBe(all);
  expect(unbegun(all, { r1: run })).toEqual([all[1]]);
});

test("an edit that came too late shows what is so", async () => {
  let there = [waits("r2", "two")];
  const api = {
    queue: async () => ({ messages: there }),
    edit: async (_: string, __: string, text: string) => {
      if (there.length === 0) throw new RequestFailed("this message has begun", 409);
      there = [{ ...there[0]!, text }];
      return { messages: there };
    },
    withdraw: async () => ({ messages: (there = []) }),
  } as unknown as Api;
  const order = (work: () => Promise<unknown>): Promise<boolean> =>
    work().then(
      () => true,
      () => false,
    );
  const queue = new Queue(api, "t", () => ({}), order);
  await queue.draw();
  expect(queue.waiting.value.map(({ text }) => text)).toEqual(["two"]);
  queue.editing.value = "r2";
  expect(await queue.edit("r2", "zwei")).toBe(true);
  expect([queue.editing.value, queue.waiting.value[0]?.text]).toEqual([null, "zwei"]);
  there = [];
  expect(await queue.edit("r2", "late")).toBe(false);
  await queue.draw();
  expect(queue.waiting.value).toEqual([]);
  expect(await queue.withdraw("r2")).toBe(true);
  expect(await new Queue(api, null, () => ({}), order).edit("r2", "x")).toBe(false);
});
