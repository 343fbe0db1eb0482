// The pure parts of the AG-UI clients: the format of a stream in any pieces, and what a run has open at any event.
import { describe, expect, it } from "vitest";
import { type Door, mount, streamAt } from "../src/agui/line.js";
import { OpenLines } from "../src/agui/open_lines.js";
import { readable } from "../src/agui/readable.js";
import { type Frame, SseReader } from "../src/agui/sse.js";
import type { AguiEvent } from "../src/fold/events.js";

const STREAM =
  ': hello\n\nid: k:1\ndata: {"a":1}\n\ndata: one\ndata: two\r\n\r\nid: k:2\n\nretry: 5\n\nid:\ndata:x\n\n';
const FRAMES: Frame[] = [
  { id: "k:1", data: '{"a":1}' },
  { id: null, data: "one\ntwo" },
  { id: "k:2", data: null },
  { id: "", data: "x" },
];

describe("a stream of server-sent events", () => {
  it("reads the same however it is cut into pieces", () => {
    for (let size = 1; size <= STREAM.length; size += 1) {
      const reader = new SseReader();
      const found: Frame[] = [];
      for (let at = 0; at < STREAM.length; at += size) found.push(...reader.feed(STREAM.slice(at, at + size)));
      expect(found, `pieces of ${size}`).toEqual(FRAMES);
    }
  });

  it("keeps a block that is not complete to itself", () => {
    const reader = new SseReader();
    expect(reader.feed("id: k:1\ndata: x\n")).toEqual([]);
    expect(reader.feed("\n")).toEqual([{ id: "k:1", data: "x" }]);
  });
});

const RUN: AguiEvent[] = [
  { type: "RUN_STARTED", threadId: "t", runId: "r" },
  { type: "STEP_STARTED", stepName: "s" },
  { type: "SUBAGENT_STARTED", subagentRunId: "a", name: "helper" },
  { type: "STEP_STARTED", stepName: "s", subagentRunId: "a" },
  { type: "REASONING_START", messageId: "m" },
  { type: "REASONING_MESSAGE_START", messageId: "m" },
  { type: "REASONING_MESSAGE_END", messageId: "m" },
  { type: "REASONING_END", messageId: "m" },
  { type: "TEXT_MESSAGE_START", messageId: "m" },
  { type: "TOOL_CALL_START", toolCallId: "c", toolCallName: "f" },
  { type: "TEXT_MESSAGE_END", messageId: "m" },
  { type: "TOOL_CALL_END", toolCallId: "c" },
  { type: "STEP_FINISHED", stepName: "s", subagentRunId: "a" },
  { type: "SUBAGENT_ERROR", subagentRunId: "a", message: "gone" },
  { type: "STEP_FINISHED", stepName: "s" },
];

/** Each start and end of a stream: what it is of, and whether it starts. */
function moves(events: AguiEvent[]): string[] {
  const open: string[] = [];
  for (const event of events) {
    const [kind, word] = [event.type.replace(/_[A-Z]+$/, ""), event.type.replace(/.*_/, "")];
    const key = event["messageId"] ?? event["toolCallId"] ?? event["stepName"] ?? event.subagentRunId ?? "";
    const line = `${kind} ${key} ${kind === "STEP" ? (event.subagentRunId ?? "") : ""}`;
    if (word === "START" || word === "STARTED") open.push(line);
    else expect(open.splice(open.indexOf(line), open.includes(line) ? 1 : 0), line).toEqual([line]);
  }
  return open;
}

describe("what a run has open", () => {
  it("is closed once, at every event, and ends the run", () => {
    for (let cut = 1; cut <= RUN.length; cut += 1) {
      const lines = new OpenLines();
      for (const event of RUN.slice(0, cut)) lines.feed(event);
      const ended = lines.close();
      expect(ended.at(-1)).toEqual({ type: "RUN_FINISHED", threadId: "t", runId: "r" });
      expect(moves([...RUN.slice(0, cut), ...ended])).toEqual([]);
      expect(lines.close()).toEqual([]);
    }
  });

  it("is nothing after an end or an error, and anew in the next run", () => {
    for (const type of ["RUN_FINISHED", "RUN_ERROR"]) {
      const lines = new OpenLines();
      for (const event of [...RUN.slice(0, 9), { type, threadId: "t", runId: "r" }]) lines.feed(event);
      expect(lines.close()).toEqual([]);
      lines.feed({ type: "RUN_STARTED", threadId: "t", runId: "r2" });
      expect(lines.close()).toEqual([{ type: "RUN_FINISHED", threadId: "t", runId: "r2" }]);
    }
  });
});

describe("the end of a run for every client", () => {
  const end = (outcome: object): never => ({ type: "RUN_FINISHED", threadId: "t", runId: "r", outcome }) as never;
  it("has no outcome that a client before 1.0 refuses", () => {
    for (const refused of [{ type: "cancelled" }, { type: "success", pendingToolCallIds: ["c"] }])
      expect(readable(end(refused))).toEqual({ type: "RUN_FINISHED", threadId: "t", runId: "r" });
    for (const taken of [{ type: "success" }, { type: "interrupt", interrupts: [{ id: "q", reason: "input" }] }])
      expect(readable(end(taken))).toEqual(end(taken));
  });
});

describe("the streams of a thread", () => {
  it("are below the mount, in the form that the agent's URL names", () => {
    const door = (interrupts: string | null): Door => ({
      ...({} as Door),
      base: mount("http://h/live/agents/a"),
      interrupts,
    });
    expect(streamAt(door(null), "t/1", "join")).toBe("http://h/live/threads/t%2F1/join");
    expect(streamAt(door("on_interrupt"), "t", "events")).toBe(
      "http://h/live/threads/t/events?interrupts=on_interrupt",
    );
  });
});
