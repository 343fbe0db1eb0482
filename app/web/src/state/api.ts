// The routes that the page uses. docs/protocol.md lists them.
import type { HeaderRecord } from "../client/runcast.js";
import type { Entry } from "../fold/events.js";
import { RequestFailed } from "./steady.js";

export interface ThreadRow {
  thread_id: string;
  last_seq: number;
  created_at: number;
  updated_at: number;
  active: boolean;
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
  usage: { inputTokens?: number; outputTokens?: number; totalTokens?: number; model?: string }[];
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
}

const PATIENCE = 20_000; // milliseconds

export class Api {
  constructor(
    readonly base: URL,
    readonly headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>),
  ) {}

  threads = (after = ""): Promise<{ threads: ThreadRow[]; next: string | null }> =>
    this.call(`threads?limit=1000${after ? `&after=${encodeURIComponent(after)}` : ""}`);
  agents = (): Promise<{ agents: { name: string }[] }> => this.call("agents");
  runs = (thread: string): Promise<{ runs: RunRow[]; size: Size }> => this.call(`${at(thread)}/runs`);
  events = (thread: string, after: number, limit: number, epoch = ""): Promise<EventPage> =>
    this.call(
      `${at(thread)}/events?after=${after}&limit=${limit}${epoch ? `&epoch=${encodeURIComponent(epoch)}` : ""}`,
    );
  snapshot = (thread: string): Promise<unknown> => this.call(`${at(thread)}/snapshot`);
  result = (thread: string, call: string): Promise<{ content: unknown }> =>
    this.call(`${at(thread)}/tools/${encodeURIComponent(call)}/result`);
  say = (thread: string | null, message: string, agent: string | null, fromRun: string | null): Promise<Started> =>
    this.call(thread === null ? "runs" : `${at(thread)}/runs`, { message, agent, from_run: fromRun });
  resume = (thread: string, answers?: Answer[]): Promise<Started> =>
    this.call(`${at(thread)}/resume`, answers ? { answers } : {});
  stop = (run: string): Promise<unknown> => this.call(`runs/${encodeURIComponent(run)}/stop`, {});

  /** The answer as JSON. Raises RequestFailed with the server's own sentence. */
  private async call<T>(path: string, body?: unknown): Promise<T> {
    const own = typeof this.headers === "function" ? await this.headers() : this.headers;
    const headers = { ...own, ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
    const given: RequestInit =
      body === undefined
        ? { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) }
        : { headers, method: "POST", body: JSON.stringify(body) };
    let response: Response;
    try {
      response = await fetch(new URL(path, this.base), given);
      if (response.ok) return (await response.json()) as T;
    } catch {
      throw new RequestFailed("The server cannot be reached. Check the line and try again.", 0);
    }
    const problem = (await response.json().catch(() => ({}))) as { detail?: string; title?: string };
    throw new RequestFailed(
      problem.detail ?? problem.title ?? `The server answered ${response.status}.`,
      response.status,
    );
  }
}

const at = (thread: string): string => `threads/${encodeURIComponent(thread)}`;
