// Watches a thread: opens a plain WebSocket, comes back with its position after every loss, and fetches what the
// line swallowed. Knows the routes and the reader's rule; does not know what a page looks like.
import { Reader } from "./reader.js";
import type { Envelope, Link, View, Watching } from "./types.js";
import { apply, initial, referred, resolved } from "./view.js";

interface EnvelopePage {
  recovered: boolean;
  epoch: string;
  head: number;
  envelopes: Envelope[];
  more: boolean;
}

const PAGE = 1000; // envelopes in one answer
const FORGOTTEN = 4010;
const REFUSED = [4001, 4009, FORGOTTEN]; // close codes after which there is no coming back

/** Watch a thread until the returned function is called. */
export function watch(options: Watching): () => void {
  const watcher = new Watcher(options);
  watcher.start();
  return () => watcher.close();
}

class Watcher {
  private reader: Reader;
  private view: View;
  private socket: WebSocket | null = null;
  private pause = 200;
  private stopped = false;
  private fetching = false;
  private held: Envelope[] = []; // what came while a fetch was under way
  private again = false; // the line was joined during a fetch: what fell between the two is fetched once more
  private timer: ReturnType<typeof setTimeout> | undefined;
  private painting = false;
  private resolving = false;
  private readonly link: Link = { state: "connecting", behind: 0, last: 0, epoch: null };
  private readonly root: URL;
  private readonly path: string;

  constructor(private readonly options: Watching) {
    const { base = "/", thread, after } = options;
    this.reader = new Reader(after === undefined ? {} : { last: after });
    this.view = initial(thread);
    this.root = new URL(base, globalThis.location?.href ?? "http://localhost/");
    if (!this.root.pathname.endsWith("/")) this.root.pathname += "/";
    this.path = `threads/${encodeURIComponent(thread)}`;
  }

  start(): void {
    this.catchUp();
    void this.open();
  }

  close(): void {
    if (this.stopped) return;
    this.stopped = true;
    clearTimeout(this.timer);
    this.socket?.close();
    this.options.onChange(this.view, this.link);
  }

  private changed(): void {
    if (this.painting || this.stopped) return;
    this.painting = true;
    const paint = (): void => {
      this.painting = false;
      this.link.last = this.reader.last ?? 0;
      this.link.epoch = this.reader.epoch;
      if (this.stopped) return;
      this.options.onChange(this.view, this.link);
      if (!this.resolving && !this.fetching) void this.resolve();
    };
    if ("requestAnimationFrame" in globalThis && !globalThis.document?.hidden) requestAnimationFrame(paint);
    else setTimeout(paint, 30);
  }

  // ------------------------------------------------------------------ HTTP

  private async ask<T>(path: string, given?: RequestInit): Promise<T> {
    const { headers, token, credentials } = this.options;
    const url = new URL(path, this.root);
    const own = typeof headers === "function" ? await headers() : headers;
    // With headers no token is needed; a token alone opens the door by itself.
    if (!headers && token && !given) url.searchParams.set("token", (await this.ticket()) ?? "");
    const request: RequestInit = {
      ...given,
      headers: { ...own, ...(given?.headers as Record<string, string>) },
      cache: "no-store",
    };
    const response = await fetch(url, credentials ? { ...request, credentials } : request);
    if (!response.ok) throw new Answered(response.status);
    return (await response.json()) as T;
  }

  /** What opens a socket that cannot send headers; null where cookies will do. */
  private async ticket(): Promise<string | null> {
    const { token, headers, thread } = this.options;
    if (token) return typeof token === "function" ? token() : token;
    if (!headers) return null;
    const body = JSON.stringify({ thread_id: thread });
    const answer = await this.ask<{ token: string }>("broadcasting/token", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body,
    });
    return answer.token;
  }

  /** Everything after `last`, page by page, from the log. */
  private async fetchRest(): Promise<void> {
    for (;;) {
      const after = this.reader.last ?? 0;
      const epoch = this.reader.epoch === null ? "" : `&epoch=${encodeURIComponent(this.reader.epoch)}`;
      const page = await this.ask<EnvelopePage>(`${this.path}/envelopes?after=${after}${epoch}&limit=${PAGE}`);
      if (page.recovered === false) {
        this.startOver(page.epoch);
        if (page.head === 0) return;
        continue;
      }
      for (const envelope of page.envelopes)
        if (this.reader.take(envelope, { fetched: true }) === "apply") apply(this.view, envelope);
      if (!page.more) {
        this.reader.epoch ??= page.epoch;
        this.reader.last ??= 0;
        return;
      }
      this.changed();
    }
  }

  /** Fetch what came by reference, one after the other, the newest first. */
  private async resolve(): Promise<void> {
    this.resolving = true;
    for (let item = referred(this.view); item !== undefined && !this.stopped; item = referred(this.view)) {
      const { view } = this;
      const place = `${this.path}/messages/${encodeURIComponent(String(item["id"]))}`;
      try {
        const answer = await this.ask<{ message: { content: unknown } }>(
          `${place}?run=${encodeURIComponent(String(item.run))}`,
        );
        resolved(view, item, answer.message);
      } catch (error) {
        if (!(error instanceof Answered) || error.status !== 404) break; // with the next envelope again
        resolved(view, item, null);
      }
      this.changed();
    }
    this.resolving = false;
  }

  private startOver(epoch: string): void {
    this.view = initial(this.options.thread);
    this.reader = new Reader({ last: 0, epoch });
  }

  private catchUp(): void {
    if (this.fetching) return;
    this.fetching = true;
    this.link.state = "recovering";
    this.changed();
    this.fetchRest().then(
      () => this.caughtUp(),
      (error: unknown) => {
        this.fetching = false;
        this.link.error = refused(error) ? "refused" : "unreachable";
        if (this.link.error === "refused") return this.close();
        this.changed();
        setTimeout(() => this.stopped || this.catchUp(), 1000);
      },
    );
  }

  private caughtUp(): void {
    this.fetching = false;
    this.link.error = null;
    this.link.behind = 0;
    this.link.state = this.socket?.readyState === 1 ? "live" : "connecting";
    const waiting = this.held;
    this.held = [];
    for (const envelope of waiting) this.take(envelope);
    if (this.again) {
      this.again = false;
      this.catchUp();
    }
    this.changed();
  }

  private take(envelope: Envelope): void {
    if (this.fetching) {
      this.link.behind = this.held.push(envelope);
      return;
    }
    switch (this.reader.take(envelope)) {
      case "apply":
        apply(this.view, envelope);
        this.link.behind = 0;
        this.changed();
        break;
      case "restart":
        this.startOver(envelope.epoch);
        this.held.push(envelope);
        this.catchUp();
        break;
      case "fetch":
        this.held.push(envelope);
        this.catchUp();
    }
  }

  // ---------------------------------------------------------------- socket

  private comeBack(): void {
    this.timer = setTimeout(() => void this.open(), this.pause * (0.5 + Math.random() / 2));
    this.pause = Math.min(this.pause * 2, 3000);
  }

  private async open(): Promise<void> {
    let ticket: string | null;
    try {
      ticket = await this.ticket();
    } catch (error) {
      if (this.stopped) return;
      this.link.error = refused(error) ? "refused" : "unreachable";
      return this.link.error === "refused" ? this.close() : this.comeBack();
    }
    if (this.stopped) return;
    const url = new URL("ws", this.root);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("session", this.options.thread);
    if (this.reader.last !== null) url.searchParams.set("after", String(this.reader.last));
    if (this.reader.epoch !== null) url.searchParams.set("epoch", this.reader.epoch);
    if (ticket) url.searchParams.set("token", ticket);
    const socket = new WebSocket(url);
    this.socket = socket;
    socket.onmessage = ({ data }: MessageEvent<string>) => this.received(socket, JSON.parse(data));
    socket.onclose = ({ code }: CloseEvent) => {
      if (this.stopped) return;
      this.link.state = "connecting";
      this.changed();
      if (!REFUSED.includes(code)) return this.comeBack();
      this.link.error = code === FORGOTTEN ? "forgotten" : "refused";
      if (code === FORGOTTEN) this.view = initial(this.options.thread);
      this.close();
    };
  }

  private received(socket: WebSocket, message: { type: string; recovered?: boolean; seq?: number }): void {
    if (message.type === "ping") socket.send('{"type":"pong"}');
    else if (message.type !== "hub.subscribed") {
      if (message.seq) this.take(message as Envelope);
    } else {
      this.pause = 200;
      // Recovered: what was missed follows on this socket. Else the log has it.
      if (message.recovered) {
        this.link.state = "live";
        this.changed();
      } else {
        this.again = this.fetching;
        this.catchUp();
      }
    }
  }
}

/** An answer that is an error. */
class Answered extends Error {
  constructor(readonly status: number) {
    super(`the server answered ${status}`);
  }
}

const refused = (error: unknown): boolean =>
  error instanceof Answered && (error.status === 401 || error.status === 403);
