/** One thing a watcher is told; docs/protocol.md says what each type carries. */
export interface Envelope {
  type: string;
  session_id: string;
  execution_id: string;
  timestamp: string;
  payload: Record<string, unknown>;
  seq: number;
  prev: number;
  epoch: string;
  part?: [number, number];
}

export type Status = "in_progress" | "completed" | "failed" | "interrupted" | "cancelled";

export interface Usage {
  prompt: number;
  completion: number;
  total: number;
}

export interface Run {
  id: string;
  status: Status | "cut short";
  started: string;
  ended?: string;
  attempt?: number;
  usage?: Usage;
  spent: Usage;
  error?: string | null;
}

export interface Interrupt {
  id: string;
  reason: string;
  message: string | null;
  tool_call_id: string | null;
  response_schema: Record<string, unknown> | null;
  value?: unknown;
}

/** A row of the timeline. What else it has depends on its kind. */
export interface Item {
  kind: "run" | "step" | "subagent" | "text" | "reasoning" | "tool" | "interrupt" | "error" | "note";
  key: string;
  run?: string;
  lane?: string | null;
  state?: "running" | "done" | "failed" | "retried" | "cut short" | Status;
  superseded?: boolean;
  [field: string]: unknown;
}

/** What a screen shows. */
export interface View {
  thread: string;
  status: Status | null;
  run: string | null;
  runs: Record<string, Run>;
  items: Item[];
  interrupts: Interrupt[];
  state: unknown;
  lastPatch: unknown[] | null;
  usage: Usage;
  envelopes: Envelope[];
  count: number;
  missed: number;
}

export interface Link {
  state: "live" | "recovering" | "connecting";
  behind: number;
  last: number;
  error?: "refused" | "unreachable" | null;
}

export type HeaderRecord = Record<string, string>;

export interface Watching {
  base?: string;
  thread: string;
  /** For the HTTP requests; asked each time when it is a function. Sockets are opened with a token fetched by them. */
  headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>);
  /** Instead of headers: a token that your own server fetched, or a function that gives a fresh one each time. */
  token?: string | (() => string | Promise<string>);
  /** As in fetch: "include" sends cookies to another origin. */
  credentials?: RequestCredentials;
  onChange(view: View, link: Link): void;
}

/** Watch a thread until the returned function is called. */
export function watch(options: Watching): () => void;
/** The view before anything came. */
export function initial(thread: string): View;
/** The view after one more envelope; the one given in is changed and returned. */
export function apply(view: View, envelope: Envelope): View;
/** A document after a JSON Patch, or as it was when an operation does not fit. */
export function patched(document: unknown, operations: unknown[]): unknown;
/** The channel of a thread, as the hub names it. */
export function channelFor(thread: string): string;

/** For Laravel Echo and pusher-js: sends the position along, so that the hub replays what was missed. */
export function authorizer(options: {
  endpoint?: string;
  headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>);
  positions?: Map<string, Reader>;
}): (
  asked: { socketId: string; channelName: string },
  callback: (error: Error | null, answer: unknown) => void,
) => Promise<void>;

/** The reader's rule: what to do with an envelope, whatever the line did to it. */
export class Reader {
  constructor(position?: { last?: number | null; epoch?: string | null });
  last: number | null;
  epoch: string | null;
  take(envelope: Envelope, options?: { fetched?: boolean }): "apply" | "drop" | "fetch" | "restart";
  start(position: { last: number; epoch: string }): void;
}
