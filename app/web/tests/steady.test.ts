import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RequestFailed, steady } from "../src/state/steady.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("asked for during the work, it is done once more afterwards, and not twice", async () => {
  const done: (() => void)[] = [];
  const work = vi.fn(() => new Promise<void>((resolve) => done.push(resolve)));
  const ask = steady(work);
  void ask();
  void ask();
  void ask();
  expect(work).toHaveBeenCalledTimes(1);
  done[0]?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(work).toHaveBeenCalledTimes(2);
  done[1]?.();
  await vi.advanceTimersByTimeAsync(0);
  expect(work).toHaveBeenCalledTimes(2);
});

test("what the line swallowed is tried again, later each time, until it works", async () => {
  let broken = 3;
  const work = vi.fn(async () => {
    broken -= 1;
    if (broken >= 0) throw new RequestFailed("gone", 0);
  });
  void steady(work, { pause: 100 })();
  for (const [time, calls] of [
    [0, 1],
    [100, 2],
    [199, 2],
    [1, 3],
    [400, 4],
    [10_000, 4],
  ] as const) {
    await vi.advanceTimersByTimeAsync(time);
    expect(work).toHaveBeenCalledTimes(calls);
  }
});

test("what the server refused is not tried again", async () => {
  const work = vi.fn(async () => {
    throw new RequestFailed("no", 403);
  });
  void steady(work)();
  await vi.advanceTimersByTimeAsync(60_000);
  expect(work).toHaveBeenCalledTimes(1);
});
