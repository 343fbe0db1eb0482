// The `*_CHUNK` shorthand, spelled out: START, CONTENT or ARGS, and END.
//
// A lane is one subagent (or the parent agent) and holds one stream, since a chunk may leave out its id and then
// means "the same as before". The same machine as runcast.slim.protocol.chunk_expander in Python.
import type { AguiEvent } from "./events.js";

interface Stream {
  chunk: string;
  key: string;
  tag: string | undefined;
  opener: Record<string, unknown>; // what its first chunk named, which later ones may repeat but not change
}

interface Kind {
  id: string;
  start: string;
  fragment: string;
  end: string;
}

const KINDS: Record<string, Kind> = {
  TEXT_MESSAGE_CHUNK: {
    id: "messageId",
    start: "TEXT_MESSAGE_START",
    fragment: "TEXT_MESSAGE_CONTENT",
    end: "TEXT_MESSAGE_END",
  },
  TOOL_CALL_CHUNK: { id: "toolCallId", start: "TOOL_CALL_START", fragment: "TOOL_CALL_ARGS", end: "TOOL_CALL_END" },
  REASONING_MESSAGE_CHUNK: {
    id: "messageId",
    start: "REASONING_MESSAGE_START",
    fragment: "REASONING_MESSAGE_CONTENT",
    end: "REASONING_MESSAGE_END",
  },
};
const OWN_LANE = new Set(
  "TEXT_MESSAGE_START TEXT_MESSAGE_CONTENT TEXT_MESSAGE_END TOOL_CALL_START TOOL_CALL_ARGS TOOL_CALL_END TOOL_CALL_RESULT STATE_SNAPSHOT STATE_DELTA CUSTOM STEP_STARTED STEP_FINISHED REASONING_START REASONING_MESSAGE_START REASONING_MESSAGE_CONTENT REASONING_MESSAGE_END REASONING_END SUBAGENT_FINISHED SUBAGENT_ERROR".split(
    " ",
  ),
);
const EVERY_LANE = new Set(["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"]);

export const isChunk = (event: AguiEvent): boolean => Object.hasOwn(KINDS, event.type);

export class ChunkExpander {
  /** What each owner is assembling; empty where there is nothing to end. */
  readonly lanes = new Map<string | undefined, Stream>();

  copy(): ChunkExpander {
    const copy = new ChunkExpander();
    for (const [owner, stream] of this.lanes) copy.lanes.set(owner, stream);
    return copy;
  }

  /** What this event stands for; null for a chunk that continues nothing or contradicts its opener. */
  feed(event: AguiEvent): AguiEvent[] | null {
    if (isChunk(event)) return this.chunk(event);
    if (OWN_LANE.has(event.type)) return [...this.close(event.subagentRunId), event];
    if (EVERY_LANE.has(event.type)) return [...[...this.lanes.keys()].flatMap((owner) => this.close(owner)), event];
    return [event];
  }

  private close(owner: string | undefined): AguiEvent[] {
    const stream = this.lanes.get(owner);
    if (stream === undefined) return [];
    this.lanes.delete(owner);
    const kind = KINDS[stream.chunk] as Kind;
    return [{ type: kind.end, [kind.id]: stream.key, ...tagged(stream.tag) }];
  }

  private chunk(chunk: AguiEvent): AguiEvent[] | null {
    const kind = KINDS[chunk.type] as Kind;
    const key = (chunk[kind.id] ?? undefined) as string | undefined;
    const lane = this.lane(chunk, key);
    if (lane === null) return null;
    const going = this.lanes.get(lane.owner);
    if (going !== undefined && going.chunk === chunk.type && (key === undefined || key === going.key)) {
      if (!agrees(chunk, going)) return null;
      return carried(chunk, going, []);
    }
    const stream = opened(chunk, key);
    if (stream === null) return null;
    const start: AguiEvent = {
      ...stream.opener,
      type: kind.start,
      [kind.id]: stream.key,
      ...tagged(stream.tag),
      ...(chunk.metadata ? { metadata: chunk.metadata } : {}),
    };
    const out = [...this.close(lane.owner), start];
    this.lanes.set(lane.owner, stream);
    return carried(chunk, stream, out);
  }

  /** The lane a chunk belongs to: its id names it, else its tag, else the only stream it can mean. */
  private lane(chunk: AguiEvent, key: string | undefined): { owner: string | undefined } | null {
    const tag = (chunk.subagentRunId ?? undefined) as string | undefined;
    if (key !== undefined) {
      for (const [owner, stream] of this.lanes) {
        if (stream.chunk === chunk.type && stream.key === key)
          return tag !== undefined && tag !== owner ? null : { owner };
      }
      return { owner: tag };
    }
    if (tag !== undefined) return { owner: tag };
    const candidates = [...this.lanes].filter(([, stream]) => stream.chunk === chunk.type).map(([owner]) => owner);
    if (candidates.includes(undefined) || candidates.length === 0) return { owner: undefined };
    return candidates.length > 1 ? null : { owner: candidates[0] };
  }
}

const tagged = (tag: string | undefined): Record<string, string> => (tag === undefined ? {} : { subagentRunId: tag });

function agrees(chunk: AguiEvent, stream: Stream): boolean {
  return ["role", "name", "toolCallName", "parentMessageId"].every(
    (name) => chunk[name] == null || !(name in stream.opener) || chunk[name] === stream.opener[name],
  );
}

function opened(chunk: AguiEvent, key: string | undefined): Stream | null {
  if (key === undefined) return null;
  let opener: Record<string, unknown> = {};
  if (chunk.type === "TEXT_MESSAGE_CHUNK")
    opener = { role: chunk["role"] ?? "assistant", name: chunk["name"] ?? undefined };
  else if (chunk.type === "TOOL_CALL_CHUNK") {
    if (chunk["toolCallName"] == null) return null;
    opener = { toolCallName: chunk["toolCallName"], parentMessageId: chunk["parentMessageId"] ?? undefined };
  }
  return { chunk: chunk.type, key, tag: chunk.subagentRunId ?? undefined, opener };
}

/** The fragment, if the chunk has one; metadata without a fragment rides on the opener. */
function carried(chunk: AguiEvent, stream: Stream, out: AguiEvent[]): AguiEvent[] {
  const silent = chunk["delta"] == null && chunk["rawEvent"] == null;
  if (silent && (out.length > 0 || chunk.metadata == null)) return out;
  const kind = KINDS[stream.chunk] as Kind;
  const tag = chunk.subagentRunId ?? stream.tag;
  out.push({
    type: kind.fragment,
    [kind.id]: stream.key,
    delta: chunk["delta"] ?? "",
    ...tagged(tag),
    ...(chunk.metadata ? { metadata: chunk.metadata } : {}),
  });
  return out;
}
