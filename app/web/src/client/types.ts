// What travels to a watcher and what a screen shows of it. docs/protocol.md says what each type carries.

/** One envelope, as the server sends it. */
export interface Envelope {
  type: string;
  session_id: string;
  execution_id: string;
  timestamp: string;
  payload: Record<string, unknown>;
  seq: number;
  prev: number;
  epoch: string;
  mark?: string;
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

/** What a message does that comes while a run is active. */
export type OnBusy = "queue" | "steer" | "interrupt" | "rollback";

/** A message that waits: it begins the run `run_id` when the thread is free. Of a long one the beginning. */
export interface Queued {
  run_id: string;
  text: string;
  on_busy: OnBusy;
  agent: string;
  at: number;
  files: number;
}

export type ItemKind =
  "run" | "step" | "subagent" | "text" | "reasoning" | "tool" | "activity" | "interrupt" | "error" | "note";

export type ItemState = "running" | "done" | "retried" | "cut short" | Status;

/** A row of the timeline; which fields it has depends on its kind. A row that changes is another object. */
export interface Item {
  kind: ItemKind;
  key: string;
  run?: string;
  lane?: string | null;
  state?: ItemState;
  superseded?: boolean;
  [field: string]: unknown;
}

/** What people noted, by AG-UI's draft of META events. */
export interface Annotation {
  id: string;
  metaType: string;
  by?: string;
  payload: Record<string, unknown> | null;
}

/** What a screen shows. */
export interface View {
  annotations: Record<string, Annotation>; // by id, without those taken back
  thread: string;
  status: Status | null;
  run: string | null;
  runs: Record<string, Run>;
  items: Item[];
  interrupts: Interrupt[];
  /** What waited when that was announced last; a message that begins leaves it. */
  queued: Queued[];
  state: unknown;
  lastPatch: Operation[] | null;
  usage: Usage;
  envelopes: Envelope[];
  count: number;
  missed: number;
}

/** One operation of a JSON Patch. */
export interface Operation {
  op: string;
  path: string;
  from?: string;
  value?: unknown;
}

/** How the line to the server is. */
export interface Link {
  state: "live" | "recovering" | "connecting";
  behind: number;
  last: number;
  epoch: string | null;
  error?: "refused" | "forgotten" | "unreachable" | null;
}

export type HeaderRecord = Record<string, string>;

export interface Watching {
  /** Where runcast is mounted: "/" or "https://host/agents/". */
  base?: string;
  thread: string;
  /** For the HTTP requests; asked each time when it is a function. Sockets are opened with a token fetched by them. */
  headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>);
  /** Instead of headers: a token that your own server fetched, or a function that gives a fresh one each time. */
  token?: string | (() => string | Promise<string>);
  /** As in fetch: "include" sends cookies to another origin. */
  credentials?: RequestCredentials;
  /** Start behind this `seq`, the end of a run: what came before is left out. */
  after?: number;
  onChange(view: View, link: Link): void;
}
