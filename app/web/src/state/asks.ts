// What a person wrote is in no envelope: the log has it, in the event that began the run.
import type { Item } from "../client/runcast.js";
import type { AguiEvent, Message } from "../fold/events.js";
import { plain, worded } from "./words.js";

interface Given {
  interruptId: string;
  status: string;
  payload?: unknown;
}

/** The user's messages that a run began with, and the answers it was given, as rows. */
export function asksOf(event: AguiEvent | undefined, run: string): Item[] {
  if (event?.type !== "RUN_STARTED" || event["runId"] !== run) return [];
  const input = (event["input"] ?? {}) as { messages?: Message[]; resume?: Given[] };
  const messages = (input.messages ?? []).filter(({ role }) => role === "user");
  return [
    ...messages.map(
      ({ id, content }) =>
        ({
          kind: "ask",
          key: `said ${run} ${id}`,
          run,
          id,
          content,
          text: textOf(content),
          parts: filesOf(content),
        }) as unknown as Item,
    ),
    ...(input.resume ?? []).map(
      ({ interruptId, status, payload }) =>
        ({
          kind: "ask",
          key: `said ${run} ${interruptId}`,
          run,
          answer: true,
          text: status === "cancelled" ? "(cancelled)" : worded(payload),
        }) as unknown as Item,
    ),
  ];
}

/** The same for a message that this page sent, before the log's event was read. */
export function sentAs(run: string, content: unknown): Item[] {
  const messages = [{ id: "sent", role: "user", content }];
  return asksOf({ type: "RUN_STARTED", runId: run, input: { messages } } as unknown as AguiEvent, run);
}

/** The name of the agent whose run this event begins. */
export function agentOf(event: AguiEvent | undefined): string | null {
  const { agent } = (event?.metadata?.["runcast"] ?? {}) as { agent?: unknown };
  return typeof agent === "string" ? agent : null;
}

type Piece = { type: string; text?: string };
const pieces = (content: unknown): Piece[] | null => (Array.isArray(content) ? (content as Piece[]) : null);
const textOf = (content: unknown): string =>
  pieces(content)
    ?.flatMap(({ type, text }) => (type === "text" ? [text ?? ""] : []))
    .join("\n") ?? plain(content);
const filesOf = (content: unknown): Piece[] => pieces(content)?.filter(({ type }) => type !== "text") ?? [];

/** A title for a thread: the first words of its first message. */
export function titleOf(event: AguiEvent | undefined): string | null {
  if (event === undefined) return null;
  const [first] = asksOf(event, event["runId"] as string);
  return firstWords(first?.["text"]);
}

/** The first words of a text, as a title; null where there are none. */
export function firstWords(whole: unknown): string | null {
  const text = typeof whole === "string" ? (whole.trim().split("\n")[0] ?? "") : "";
  return text === "" ? null : text.length > 80 ? `${text.slice(0, 79)}…` : text;
}
