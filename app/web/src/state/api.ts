// The routes that the page uses. docs/protocol.md lists them.
import type { Annotation, HeaderRecord, OnBusy, Queued } from "../client/runcast.js";
import type { Entry } from "../fold/events.js";
import { RequestFailed } from "./steady.js";

export interface ThreadRow {
  thread_id: string;
  last_seq: number;
  created_at: number;
  updated_at: number;
  active: boolean;
  title: string | null;
  status: string | null; // of its newest run
}

/** A JSON Schema that an agent has, and where a client sends its values; null where they are only read. */
export interface Asks {
  schema: Record<string, unknown>;
  place: string | null;
}

export interface AgentRow {
  name: string;
  on_busy?: OnBusy | "refuse"; // what a message does by itself while a run is active
  capabilities?: { multimodal?: { input?: Record<string, boolean> } };
  schemas?: { input?: Asks; context?: Asks; state?: Asks };
}

export type Price = { input: number; output: number; cached?: number };

export interface PageOptions {
  prices: Record<string, Price>; // of a million tokens, by model
  currency: string;
  demo: boolean;
}

export interface Drawing {
  nodes: { id: string; name: string; kind: string }[];
  edges: { source: string; target: string; label?: string; conditional?: boolean }[];
}

/** Part of a message: text, or a file with its bytes. */
export type Part =
  | { type: "text"; text: string }
  | {
      type: "image" | "audio" | "video" | "document";
      source: { type: "data"; value: string; mimeType: string };
      metadata?: { filename: string };
    };

export interface Say {
  message: string | Part[];
  agent: string | null;
  from_run: string | null;
  on_busy?: OnBusy;
  forwarded_props?: Record<string, unknown>;
}

export interface RunRow {
  run_id: string;
  parent: string | null;
  edge: string;
  attempt: number;
  status: string;
  first_seq: number;
  last_seq: number;
  started_at: number;
  ended_at: number | null;
  terminal: string | null;
  usage: {
    inputTokens?: number;
    outputTokens?: number;
    cachedInputTokens?: number;
    totalTokens?: number;
    model?: string;
  }[];
  pruned: boolean;
}

export interface Size {
  events: number;
  bytes: number;
  compacted: number | null;
  snapshot: number | null;
}

export interface EventPage {
  recovered: boolean;
  epoch: string;
  head: number;
  more: boolean;
  /** Binds the position behind the last event to its history. */
  mark?: string;
  events: Entry[];
}

export interface Answer {
  interruptId: string;
  status: "resolved" | "cancelled";
  payload?: unknown;
}

export interface Started {
  thread_id: string;
  run_id: string;
  status?: string; // of a message in a thread: started, queued or steering
}

const PATIENCE = 20_000; // milliseconds

export class Api {
  constructor(
    readonly base: URL,
    readonly headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>),
  ) {}

  threads = (after = ""): Promise<{ threads: ThreadRow[]; next: string | null }> =>
    this.call(`threads?limit=1000${after ? `&after=${encodeURIComponent(after)}` : ""}`);
  agents = (): Promise<{ agents: AgentRow[] }> => this.call("agents");
  drawing = (agent: string): Promise<Drawing> => this.call(`agents/${encodeURIComponent(agent)}/graph`);
  options = (): Promise<PageOptions> => this.call("page.json");
  rename = (thread: string, title: string | null): Promise<unknown> => this.call(`${at(thread)}/title`, { title });
  /** The demo's worker: its process, or null where it is dead. */
  worker = (order?: "kill" | "resume"): Promise<{ worker: number | null }> =>
    order === undefined ? this.call("demo") : this.call(`demo/${order}`, {});
  runs = (thread: string): Promise<{ runs: RunRow[]; size: Size }> => this.call(`${at(thread)}/runs`);
  events = (thread: string, after: number, limit: number, epoch = ""): Promise<EventPage> =>
    this.call(
      `${at(thread)}/events?after=${after}&limit=${limit}${epoch ? `&epoch=${encodeURIComponent(epoch)}` : ""}`,
    );
  snapshot = (thread: string): Promise<unknown> => this.call(`${at(thread)}/snapshot`);
  result = (thread: string, call: string): Promise<{ content: unknown }> =>
    this.call(`${at(thread)}/tools/${encodeURIComponent(call)}/result`);
  say = (thread: string | null, said: Say): Promise<Started> =>
    this.call(thread === null ? "runs" : `${at(thread)}/runs`, said);
  /** Start a run in a new thread with a whole input of the protocol; it goes on when its stream is left. */
  begin = async (agent: string, input: Record<string, unknown>): Promise<Started> => {
    const [thread_id, run_id] = [newId(), newId()];
    const given = { threadId: thread_id, runId: run_id, tools: [], context: [], ...input };
    const response = await this.fetched(`agents/${encodeURIComponent(agent)}`, given);
    void response.body?.cancel();
    return { thread_id, run_id };
  };
  queue = (thread: string): Promise<{ messages: Queued[] }> => this.call(`${at(thread)}/queue`);
  edit = (thread: string, run: string, message: string): Promise<{ messages: Queued[] }> =>
    this.call(`${at(thread)}/queue/${encodeURIComponent(run)}`, { message });
  withdraw = (thread: string, run: string): Promise<{ messages: Queued[] }> =>
    this.call(`${at(thread)}/queue/${encodeURIComponent(run)}/withdraw`, {});
  resume = (thread: string, answers?: Answer[]): Promise<Started> =>
    this.call(`${at(thread)}/resume`, answers ? { answers } : {});
  annotate = (thread: string, annotation: Annotation): Promise<unknown> =>
    this.call(`${at(thread)}/annotations`, annotation);
  stop = (run: string): Promise<unknown> => this.call(`runs/${encodeURIComponent(run)}/stop`, {});

  /** The answer as JSON. Raises RequestFailed with the server's own sentence. */
  private async call<T>(path: string, body?: unknown): Promise<T> {
    const response = await this.fetched(path, body);
    try {
      return (await response.json()) as T;
    } catch {
      throw unreachable();
    }
  }

  private async fetched(path: string, body?: unknown): Promise<Response> {
    const own = typeof this.headers === "function" ? await this.headers() : this.headers;
    const headers = { ...own, ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
    const given: RequestInit =
      body === undefined
        ? { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) }
        : { headers, method: "POST", body: JSON.stringify(body) };
    let response: Response;
    try {
      response = await fetch(new URL(path, this.base), given);
    } catch {
      throw unreachable();
    }
    if (response.ok) return response;
    const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string };
    throw new RequestFailed(
      problem.detail ?? problem.title ?? `The server answered ${response.status}.`,
      response.status,
    );
  }
}

const unreachable = (): RequestFailed =>
  new RequestFailed("The server cannot be reached. Check the line and try again.", 0);
const newId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const at = (thread: string): string => `threads/${encodeURIComponent(thread)}`;
