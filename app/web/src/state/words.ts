// How numbers, times and states read: one vocabulary for the whole page.

export type Tone = "busy" | "good" | "bad" | "warn" | "quiet";

const STATES: Record<string, [string, Tone]> = {
  in_progress: ["Working", "busy"],
  running: ["Working", "busy"],
  completed: ["Done", "good"],
  done: ["Done", "good"],
  failed: ["Failed", "bad"],
  interrupted: ["Waiting for you", "warn"],
  cancelled: ["Stopped", "warn"],
  retried: ["Retried", "warn"],
  truncated: ["Cut short", "bad"],
  "cut short": ["Cut short", "bad"],
};

/** What a state is called, and how loud it is. */
export function stateOf(state: string | null | undefined): { label: string; tone: Tone } {
  const [label, tone] = STATES[state ?? ""] ?? [state ? state.replaceAll("_", " ") : "No run yet", "quiet"];
  return { label, tone };
}

/** What a question is called: its message, or its reason where that says more than that the run waits. */
export const headingOf = ({ message, reason }: { message?: unknown; reason?: unknown }): string =>
  String(message ?? (reason === "interrupt" ? "The agent waits for your answer" : reason));

const EDGES: Record<string, string> = {
  continue: "continues",
  resume: "resumes",
  branch: "branches off",
  spawn: "spawned",
};
export const edgeOf = (edge: string): string => EDGES[edge] ?? edge;

export function duration(ms: number | null | undefined): string {
  if (ms == null) return "";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return seconds < 3600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export function bytes(n: number | null | undefined): string {
  if (n == null) return "–";
  if (n < 1000) return `${n} B`;
  return n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

export const number = (n: number): string => n.toLocaleString("en-GB");
export const short = (id: string): string => (id.length > 14 ? `${id.slice(0, 8)}…` : id);
export const pretty = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");

/** How long ago, in words; `at` and `now` in milliseconds. */
export function ago(at: number, now: number): string {
  const seconds = Math.max(0, (now - at) / 1000);
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  if (seconds < 7 * 86_400) return `${Math.round(seconds / 86_400)} d ago`;
  return new Date(at).toLocaleDateString();
}

export const clock = (at: string | number): string => new Date(at).toLocaleTimeString();
export const exact = (at: string | number): string =>
  new Date(at).toLocaleString(undefined, { dateStyle: "full", timeStyle: "long" });

/** The text of a message's content, which may be a list of parts. */
export function plain(content: unknown): string {
  if (!Array.isArray(content)) return content == null ? "" : typeof content === "string" ? content : pretty(content);
  return content.map((part: { text?: string; type?: string }) => part?.text ?? `[${part?.type ?? "part"}]`).join("\n");
}

/** An answer as a person would word it. */
export function worded(payload: unknown): string {
  const [only, ...more] = payload !== null && typeof payload === "object" ? Object.values(payload) : [payload];
  if (typeof only === "boolean" && more.length === 0) return only ? "Yes" : "No";
  return pretty(payload ?? null);
}
