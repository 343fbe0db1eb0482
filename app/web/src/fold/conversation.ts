// What a stream of events amounts to: messages, state, open questions.
//
// The same as `runcast.slim.fold` in Python and as the client of AG-UI 1.0 hold, after any events; a test compares
// all of them at every cut. What that client ignores with a warning is ignored here.
import { attempt, patched } from "../client/patch.js";
import { ChunkExpander, isChunk } from "./chunks.js";
import type { AguiEvent, Message, ToolCall } from "./events.js";
import { Transcript } from "./transcript.js";

/** An open question, as the protocol spells it. */
export interface Asked {
  id: string;
  reason: string;
  message?: string;
  toolCallId?: string;
  responseSchema?: Record<string, unknown>;
  [field: string]: unknown;
}

/** A conversation at one moment; nothing in it changes afterwards. */
export interface Moment {
  messages: Message[];
  state: unknown;
  interrupts: Asked[];
}

type Handler = (conversation: Conversation, event: AguiEvent) => void;

export class Conversation {
  transcript = new Transcript();
  state: unknown = {};
  interrupts: Asked[] = [];
  private chunks = new ChunkExpander();

  /** A conversation of its own that goes on from here. */
  copy(): Conversation {
    const copy = new Conversation();
    copy.transcript = Transcript.of(this.transcript.messages());
    copy.state = this.state;
    copy.interrupts = this.interrupts;
    copy.chunks = this.chunks.copy();
    return copy;
  }

  moment(): Moment {
    return { messages: this.transcript.messages(), state: this.state, interrupts: this.interrupts };
  }

  feed(event: AguiEvent): void {
    const events = this.chunks.lanes.size > 0 || isChunk(event) ? this.chunks.feed(event) : [event];
    for (const each of events ?? []) if (Object.hasOwn(HANDLERS, each.type)) HANDLERS[each.type]?.(this, each);
  }
}

const HANDLERS: Record<string, Handler> = {
  TEXT_MESSAGE_START: (it, event) => start(it, event, event["role"] ?? "assistant"),
  REASONING_MESSAGE_START: (it, event) => start(it, event, "reasoning"),
  TEXT_MESSAGE_CONTENT: content,
  REASONING_MESSAGE_CONTENT: content,
  TEXT_MESSAGE_END: end,
  REASONING_MESSAGE_END: end,
  REASONING_ENCRYPTED_VALUE: encrypted,
  TOOL_CALL_START: startCall,
  TOOL_CALL_ARGS: (it, event) =>
    void it.transcript.changeCall(event["toolCallId"], (call) =>
      merged({ ...call, function: { ...call.function, arguments: call.function.arguments + event["delta"] } }, event),
    ),
  TOOL_CALL_END: (it, event) => void it.transcript.changeCall(event["toolCallId"], (call) => merged(call, event)),
  TOOL_CALL_RESULT: result,
  STATE_SNAPSHOT: (it, event) => {
    it.state = event["snapshot"];
  },
  STATE_DELTA: (it, event) => {
    it.state = patched(it.state, event["delta"]);
  },
  MESSAGES_SNAPSHOT: messagesSnapshot,
  ACTIVITY_SNAPSHOT: activitySnapshot,
  ACTIVITY_DELTA: activityDelta,
  RUN_STARTED: (it, event) => {
    for (const message of (event["input"]?.messages ?? []) as Message[])
      if (!it.transcript.find(message.id)) it.transcript.append(message);
  },
  RUN_FINISHED: (it, event) => {
    it.interrupts = event["outcome"]?.type === "interrupt" ? event["outcome"].interrupts : [];
  },
};

/** The same with an event's metadata folded in, key by key; the last write wins. */
function merged<T extends { metadata?: Record<string, unknown> }>(held: T, event: AguiEvent): T {
  return event.metadata == null ? held : { ...held, metadata: { ...held.metadata, ...event.metadata } };
}

const owner = (event: AguiEvent): Partial<Message> =>
  event.subagentRunId == null ? {} : { subagentRunId: event.subagentRunId };

function start(it: Conversation, event: AguiEvent, role: string): void {
  const name = event["name"] == null || role === "reasoning" ? {} : { name: event["name"] };
  const place =
    it.transcript.find(event["messageId"]) ??
    it.transcript.append({ id: event["messageId"], role, content: "", ...name, ...owner(event) });
  if (place.message.role !== "activity") place.message = merged(place.message, event);
}

function content(it: Conversation, event: AguiEvent): void {
  const place = it.transcript.find(event["messageId"]);
  if (place === undefined || place.message.role === "activity") return;
  const before = typeof place.message.content === "string" ? place.message.content : "";
  place.message = merged({ ...place.message, content: before + event["delta"] }, event);
}

function end(it: Conversation, event: AguiEvent): void {
  const place = it.transcript.find(event["messageId"]);
  if (place !== undefined && place.message.role !== "activity") place.message = merged(place.message, event);
}

function encrypted(it: Conversation, event: AguiEvent): void {
  const encryptedValue: string = event["encryptedValue"];
  if (event["subtype"] === "tool-call") {
    it.transcript.changeCall(event["entityId"], (call) => ({ ...call, encryptedValue }));
    return;
  }
  const place = it.transcript.find(event["entityId"]);
  if (place !== undefined && place.message.role !== "activity") place.message = { ...place.message, encryptedValue };
}

/** A call joins the assistant message it names; without one it gets a message of its own. */
function startCall(it: Conversation, event: AguiEvent): void {
  const id: string = event["toolCallId"];
  const name: string = event["toolCallName"];
  if (it.transcript.changeCall(id, (call) => merged({ ...call, function: { ...call.function, name } }, event))) return;
  const parent: string | null = event["parentMessageId"] || null;
  let place = parent === null ? undefined : it.transcript.find(parent);
  if (place?.message.role !== "assistant") {
    const home = parent !== null && place === undefined ? parent : id;
    const owned = it.transcript.find(home) === undefined ? owner(event) : {};
    place = it.transcript.append({ id: home, role: "assistant", toolCalls: [], ...owned });
  }
  const call: ToolCall = { id, type: "function", function: { name, arguments: "" } };
  it.transcript.addCall(place, merged(call, event));
}

function result(it: Conversation, event: AguiEvent): void {
  const metadata = event.metadata == null ? {} : { metadata: event.metadata };
  const message: Message = {
    id: event["messageId"],
    toolCallId: event["toolCallId"],
    role: "tool",
    content: event["content"],
    ...owner(event),
    ...metadata,
  };
  it.transcript.insertResult(event["toolCallId"], message);
}

function messagesSnapshot(it: Conversation, event: AguiEvent): void {
  const messages = event["messages"] as Message[];
  const roles = new Set(messages.map(({ role }) => role));
  const owned = authoritative(event.metadata, roles.has("activity"));
  it.transcript.restate(messages, (message) => {
    if (message.role === "activity") return owned !== null && !owned.includes(message.activityType ?? "");
    return message.role === "reasoning" && !roles.has("reasoning");
  });
}

/** The activity types that a snapshot removes by leaving them out; null means every type. */
function authoritative(metadata: Record<string, unknown> | undefined, whole: boolean): string[] | null {
  const found = metadata?.["@ag-ui/client"] ?? {};
  if (typeof found !== "object" || Array.isArray(found)) return [];
  if (!("authoritativeActivityTypes" in found)) return whole ? null : [];
  const types: unknown = found.authoritativeActivityTypes;
  if (types === null) return null;
  return Array.isArray(types) && types.every((each) => typeof each === "string") ? types : [];
}

function activitySnapshot(it: Conversation, event: AguiEvent): void {
  let place = it.transcript.find(event["messageId"]);
  if (place === undefined || event["replace"] !== false) {
    const stated: Message = {
      id: event["messageId"],
      role: "activity",
      activityType: event["activityType"],
      content: event["content"],
      ...owner(event),
    };
    const former = place?.message.role === "activity" ? place.message : undefined;
    if (place === undefined) place = it.transcript.append(stated);
    else if (former === undefined) it.transcript.replace(place, stated);
    else {
      const { subagentRunId: _, ...kept } = former;
      place.message = { ...kept, ...stated };
    }
    place = it.transcript.find(event["messageId"]);
  }
  if (place?.message.role === "activity") place.message = merged(place.message, event);
}

function activityDelta(it: Conversation, event: AguiEvent): void {
  const place = it.transcript.find(event["messageId"]);
  if (place?.message.role !== "activity") return;
  const message = merged(place.message, event);
  const { value, applied } = attempt(message.content, event["patch"]);
  place.message = applied ? { ...message, content: value, activityType: event["activityType"] } : message;
}
