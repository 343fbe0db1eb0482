// Envelopes as a server sends them, made up for tests.
import type { Envelope } from "../src/client/runcast.js";

let seq = 0;

export function envelope(type: string, payload: Record<string, unknown>, run = "r1"): Envelope {
  seq += 1;
  return {
    type,
    session_id: "t",
    execution_id: run,
    seq,
    prev: seq - 1,
    epoch: "e",
    timestamp: "2026-01-16T10:05:00.123Z",
    payload,
  };
}

export const started = (run = "r1", attempt?: number): Envelope =>
  envelope("agent.status", { status: "in_progress", attempt }, run);
export const ended = (status: string, run = "r1"): Envelope => envelope("agent.status", { status }, run);
export const chunk = (id: string, text: string, more: Record<string, unknown> = {}, run = "r1"): Envelope =>
  envelope("agent.stream.chunk", { message_id: id, chunk: text, is_complete: false, ...more }, run);
