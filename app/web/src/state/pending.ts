// Calls whose arguments are still being written: no envelope tells of a call before it is whole, the log's events do.
import type { Entry } from "../fold/events.js";

export interface PendingCall {
  id: string;
  name: string;
  args: string;
}

/** The calls that these events begin and do not end. */
export function pendingCalls(entries: readonly Entry[]): PendingCall[] {
  const calls = new Map<string, PendingCall>();
  for (const { event } of entries) {
    const id = event["toolCallId"] as string;
    if (event.type === "TOOL_CALL_START") calls.set(id, { id, name: event["toolCallName"] as string, args: "" });
    else if (event.type === "TOOL_CALL_ARGS") {
      const call = calls.get(id);
      if (call) calls.set(id, { ...call, args: call.args + (event["delta"] as string) });
    } else if (event.type === "TOOL_CALL_END" || event.type === "TOOL_CALL_RESULT") calls.delete(id);
  }
  return [...calls.values()];
}
