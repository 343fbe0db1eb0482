// What took how long: rows of a waterfall out of the rows of the conversation.
import type { Item, Run } from "../client/runcast.js";

export interface Span {
  key: string; // the row it stands for
  kind: "run" | "step" | "tool" | "subagent" | "wait" | "model";
  name: string;
  state: string | null;
  start: number; // milliseconds since the epoch
  end: number;
  depth: number;
  tokens: number | null;
}

type Speech = Span & { place: string };

const SPOKEN = new Set(["text", "reasoning"]);
const DRAWN = new Set(["step", "tool", "subagent"]);

/** The spans in order of their beginning; what is not over yet ends `now`, or died with its process. */
export function spansOf(
  items: readonly Item[],
  runs: Readonly<Record<string, Run>>,
  now: number,
  stalled = false,
): Span[] {
  const spans: Span[] = [];
  let before: Run | null = null;
  const seen = new Set<string>();
  const ends = new Map<string, number>();
  let spoken: Speech | null = null;
  for (const item of items) {
    const run = runs[item.run ?? ""];
    if (item.kind === "run" && run && !seen.has(run.id)) {
      seen.add(run.id);
      const start = Date.parse(run.started);
      if (before?.ended && before.status === "interrupted") {
        spans.push({
          key: item.key,
          kind: "wait",
          name: "waiting for a person",
          state: null,
          start: Date.parse(before.ended),
          end: Math.max(start, Date.parse(before.ended)),
          depth: 0,
          tokens: null,
        });
      }
      const end = run.ended
        ? Date.parse(run.ended)
        : run.status === "in_progress" && !stalled
          ? now
          : lastOf(items, run.id, start);
      ends.set(run.id, end);
      spans.push({
        key: item.key,
        kind: "run",
        name: `run ${run.id.slice(0, 8)}`,
        state: run.status === "in_progress" && stalled ? "cut short" : run.status,
        start,
        end,
        depth: 0,
        tokens: (run.usage ?? run.spent).total || null,
      });
      before = run;
      spoken = null;
    } else if (DRAWN.has(item.kind)) {
      spans.push(spanOf(item, item.state === "cut short" ? (ends.get(item.run ?? "") ?? now) : now));
      spoken = null;
    } else if (SPOKEN.has(item.kind) && item["started"] && item["role"] !== "user") {
      spoken = speech(item, spoken, now);
      if (spoken.key === item.key) spans.push(spoken);
    }
  }
  return spans;
}

/** One call of a model: what it thinks and says without anything in between, from its first word to its last. */
function speech(item: Item, former: Speech | null, now: number): Speech {
  const start = Date.parse(item["started"] as string);
  const over = item["complete"] === true || item.state === "cut short" || item.superseded === true;
  const end = Math.max(start, over ? Date.parse((item["until"] ?? item["started"]) as string) : now);
  const place = `${item.run} ${item.lane ?? ""} ${item["step"] ?? ""}`;
  const state = item.superseded === true || item["broken"] === true ? "cut short" : over ? "done" : "running";
  if (former?.place === place) return Object.assign(former, { end, state });
  const depth = 2 + (item.lane == null ? 0 : 1);
  return { key: item.key, kind: "model", name: "model", state, start, end, depth, tokens: null, place };
}

function spanOf(item: Item, now: number): Span {
  const start = Date.parse(item["started"] as string);
  const ms = item["ms"] as number | null | undefined;
  const end = ms != null ? start + ms : item.state === "running" || item.state === "cut short" ? now : start;
  const total = (item["usage"] as { total?: number } | undefined)?.total ?? null;
  return {
    key: item.key,
    kind: item.kind as Span["kind"],
    name: String(item["name"] ?? item.kind),
    state: item.state ?? null,
    start,
    end: Math.max(start, end),
    depth: 1 + (item.kind === "tool" ? 1 : 0) + (item.lane == null ? 0 : 1),
    tokens: total || null,
  };
}

/** When a run without an end showed its last sign of life. */
function lastOf(items: readonly Item[], run: string, start: number): number {
  return items.reduce(
    (last, item) =>
      item.run === run && item["started"]
        ? Math.max(last, Date.parse((item["until"] ?? item["started"]) as string) + Number(item["ms"] ?? 0))
        : last,
    start,
  );
}
