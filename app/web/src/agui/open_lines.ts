// What a run has open, so that a run whose process died can be closed before the run that goes on from it starts.
//
// Pure. The client refuses a RUN_STARTED inside a run, and an end of a run with a message, a call or a step open.
import type { AguiEvent } from "../fold/events.js";

type Fields = Record<string, unknown>;

const STARTS: Record<string, { key: string; end: string }> = {
  TEXT_MESSAGE_START: { key: "messageId", end: "TEXT_MESSAGE_END" },
  REASONING_START: { key: "messageId", end: "REASONING_END" },
  REASONING_MESSAGE_START: { key: "messageId", end: "REASONING_MESSAGE_END" },
  TOOL_CALL_START: { key: "toolCallId", end: "TOOL_CALL_END" },
  STEP_STARTED: { key: "stepName", end: "STEP_FINISHED" },
  SUBAGENT_STARTED: { key: "subagentRunId", end: "SUBAGENT_FINISHED" },
};
const ENDS: Record<string, string> = {
  ...Object.fromEntries(Object.values(STARTS).map(({ end, key }) => [end, key])),
  SUBAGENT_ERROR: "subagentRunId",
};

/** Follows events; `close` ends what is open in them. */
export class OpenLines {
  /** The run that has not ended; null between two runs. */
  run: { threadId: string; runId: string } | null = null;
  private readonly open = new Map<string, AguiEvent>();

  feed(event: AguiEvent): void {
    const { type } = event;
    if (type === "RUN_STARTED") this.run = { threadId: event["threadId"], runId: event["runId"] };
    if (type === "RUN_FINISHED" || type === "RUN_ERROR") this.run = null;
    if (type === "RUN_STARTED" || this.run === null) this.open.clear();
    const start = Object.hasOwn(STARTS, type) ? STARTS[type] : undefined;
    if (start) {
      const tag: Fields = event.subagentRunId === undefined ? {} : { subagentRunId: event.subagentRunId };
      const end = { type: start.end, [start.key]: event[start.key], ...tag };
      this.open.set(line(start.end, event, start.key), end);
    } else if (Object.hasOwn(ENDS, type)) {
      const end = type === "SUBAGENT_ERROR" ? "SUBAGENT_FINISHED" : type;
      this.open.delete(line(end, event, ENDS[type] as string));
    }
  }

  /** The events that end the run and all it has open, the newest first; none between two runs. */
  close(): AguiEvent[] {
    if (this.run === null) return [];
    const events = [...[...this.open.values()].reverse(), { type: "RUN_FINISHED", ...this.run }];
    this.run = null;
    this.open.clear();
    return events;
  }
}

/** The name of a line: steps are named within their subagent, everything else by its id alone. */
function line(end: string, event: AguiEvent, key: string): string {
  return JSON.stringify([end, event[key], end === "STEP_FINISHED" ? event.subagentRunId : null]);
}
