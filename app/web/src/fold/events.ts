// AG-UI events and messages as the log's routes send them: JSON, field names as on the wire.

/** An event; which fields it has depends on its type. */
export interface AguiEvent {
  type: string;
  timestamp?: number;
  metadata?: Record<string, unknown>;
  subagentRunId?: string;
  [field: string]: any;
}

/** An event and its place in the log. */
export interface Entry {
  seq: number;
  event: AguiEvent;
}

export interface ToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
  metadata?: Record<string, unknown>;
  encryptedValue?: string;
}

/** A message; which fields it has depends on its role. */
export interface Message {
  id: string;
  role: string;
  content?: unknown;
  toolCalls?: ToolCall[];
  toolCallId?: string;
  activityType?: string;
  subagentRunId?: string;
  metadata?: Record<string, unknown>;
  [field: string]: unknown;
}
