// Events in the form that every version of the client takes. Knows events; asks nobody.
import type { BaseEvent } from "@ag-ui/client";

/** As every client reads it: those before 1.0, CopilotKit's among them, refuse an outcome that says "cancelled" or names calls. */
export function readable(event: BaseEvent): BaseEvent {
  const { outcome, ...plain } = event as BaseEvent & { outcome?: { type: string; pendingToolCallIds?: string[] } };
  return outcome?.type === "cancelled" || outcome?.pendingToolCallIds !== undefined ? plain : event;
}
