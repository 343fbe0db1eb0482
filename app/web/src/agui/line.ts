// A line to runcast that comes back: one stream of events, read over as many connections as it takes.
//
// Knows positions (`Last-Event-ID`) and when to try again; does not know what the events mean. Events are handed on
// with the position behind them, so that a cut in between repeats nothing and leaves nothing out.
import type { AguiEvent } from "../fold/events.js";
import { SseReader } from "./sse.js";

/** How requests are made. */
export interface Door {
  /** Where runcast is mounted, with a last slash. */
  base: URL;
  /** The agent's `?interrupts=…`: the form in which its streams ask. */
  interrupts: string | null;
  headers(): Record<string, string>;
  fetch(url: string, request: RequestInit): Promise<Response>;
  /** Milliseconds without any answer after which a line gives up. */
  patience: number;
  /** Milliseconds without a byte after which a connection counts as cut: the server comments every 15 seconds. */
  silence: number;
}

/** Events up to a position that holds once all of them are applied. */
export interface Portion {
  events: AguiEvent[];
  id: string;
}

/** An answer that is an error, with the server's own sentence. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly payload: unknown,
  ) {
    super(`HTTP ${status}: ${typeof payload === "string" ? payload : JSON.stringify(payload)}`);
    this.name = "Refused";
  }
}

const LATER = [408, 425, 502, 503, 504]; // a proxy without its server, a server that starts or shuts down
const PAUSES = { first: 100, longest: 3000 };

/** Whether the same request may be answered otherwise in a moment. */
export const passing = (error: unknown): boolean => !(error instanceof Refused) || LATER.includes(error.status);

/** Where runcast is mounted, with a last slash: `base`, or what stands before `agents/…` in an agent's URL. */
export function mount(url: string, base?: string): URL {
  const here = globalThis.location?.href;
  const found = new URL(
    base ?? new URL(url, here).href.replace(/[?#].*$/, "").replace(/\/agents\/[^/]+\/?$/, ""),
    here,
  );
  if (!found.pathname.endsWith("/")) found.pathname += "/";
  return found;
}

/** The URL of a path below the mount, with each segment encoded. */
export const at = (door: Door, ...segments: string[]): string =>
  new URL(segments.map(encodeURIComponent).join("/"), door.base).href;

/** The URL of a thread's stream below the mount, in the agent's form. */
export function streamAt(door: Door, thread: string, route: "join" | "events"): string {
  const form = door.interrupts === null ? "" : `?interrupts=${encodeURIComponent(door.interrupts)}`;
  return at(door, "threads", thread, route) + form;
}

/** The answer, if it is none of an error. */
export async function answered(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = await response.text().catch(() => "");
  const json = (response.headers.get("content-type") ?? "").includes("json");
  let payload: unknown = text;
  if (json) {
    try {
      payload = JSON.parse(text);
    } catch {
      payload = text; // cut off, or no JSON after all
    }
  }
  throw new Refused(response.status, payload);
}

/** A route's answer as JSON. */
export async function ask<T>(door: Door, url: string, body?: unknown): Promise<T> {
  const headers = { ...door.headers(), ...(body === undefined ? {} : { "Content-Type": "application/json" }) };
  const given = body === undefined ? { headers } : { headers, method: "POST", body: JSON.stringify(body) };
  const response = await answered(await door.fetch(url, { ...given, cache: "no-store" }));
  return (await response.json()) as T;
}

/** Do something until it works; what cannot work later, or not within the line's patience, is thrown. */
export async function insist<T>(door: Door, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  let pause = PAUSES.first;
  for (const began = Date.now(); ;) {
    try {
      return await work();
    } catch (error) {
      if (signal.aborted || !passing(error) || Date.now() - began > door.patience) throw error;
    }
    await rest(pause, signal);
    pause = Math.min(PAUSES.longest, pause * 2);
  }
}

/** The portions of one response, until it ends or breaks off. Events behind the last position are left out. */
export async function* portionsOf(response: Response, silence: number): AsyncGenerator<Portion> {
  const reader = response.body?.getReader();
  if (reader === undefined) return;
  const decoder = new TextDecoder();
  const frames = new SseReader();
  let events: AguiEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    for (;;) {
      clearTimeout(timer);
      timer = setTimeout(() => void reader.cancel().catch(() => {}), silence);
      const { done, value } = await reader.read();
      if (done) return;
      for (const { id, data } of frames.feed(decoder.decode(value, { stream: true }))) {
        if (data !== null) events.push(JSON.parse(data) as AguiEvent);
        if (id === null) continue;
        yield { events, id };
        events = [];
      }
    }
  } finally {
    clearTimeout(timer);
    void reader.cancel().catch(() => {});
  }
}

/** A route's stream behind a position, and every portion that follows, until the reader leaves. */
export async function* line(
  door: Door,
  url: string,
  signal: AbortSignal,
  last: string | null = null,
): AsyncGenerator<Portion> {
  let id = last;
  let pause = 0;
  let heard = Date.now();
  while (!signal.aborted) {
    let connected = false;
    try {
      const headers = {
        ...door.headers(),
        Accept: "text/event-stream",
        ...(id === null ? {} : { "Last-Event-ID": id }),
      };
      const response = await answered(await door.fetch(url, { headers, cache: "no-store", signal }));
      connected = true;
      for await (const portion of portionsOf(response, door.silence)) {
        yield portion;
        id = portion.id;
        pause = 0;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!passing(error) || (!connected && Date.now() - heard > door.patience)) throw error;
    }
    if (connected) heard = Date.now();
    if (pause > 0) await rest(pause, signal);
    pause = Math.min(PAUSES.longest, Math.max(PAUSES.first, pause * 2));
  }
}

/** Wait, or until the reader leaves; a part of the time is left to chance, so that many do not come back at once. */
export function rest(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", over);
      done();
    };
    const timer = setTimeout(over, milliseconds * (0.5 + Math.random() / 2));
    signal.addEventListener("abort", over);
    if (signal.aborted) over();
  });
}
