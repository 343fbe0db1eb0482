// One thread under a person's eyes: what it shows, what it asks, and what can be done in it.
import { batch, computed, signal } from "@preact/signals";
import {
  type Annotation,
  type Interrupt,
  type Item,
  type Link,
  type OnBusy,
  type Queued,
  type View,
  watch,
} from "../client/runcast.js";
import type { Message } from "../fold/events.js";
import type { Answer, Api, Part, RunRow, Size, Started } from "./api.js";
import { agentOf, asksOf, sentAs } from "./asks.js";
import { History } from "./history.js";
import { Queue } from "./queue.js";
import { RequestFailed, steady } from "./steady.js";

const NO_QUESTIONS: Interrupt[] = []; // always the same, so that nothing is drawn again for it
const NONE: Record<string, Annotation> = {};
const LONG = 6000; // events above which only the newest runs are opened at first
const HEAD_START = 250; // milliseconds that the list of runs is waited for before the thread is read from its beginning
const PATIENT = 2000; // milliseconds between two looks at a run that may have lost its process
const PREDICTION = "PredictState"; // for clients that keep a state of their own; the tab Raw has it

export interface Shown {
  view: View;
  link: Link;
}

/** A thread in short, shown until all of it was read. */
export interface Preview {
  messages: Message[];
  status: string;
  events: number;
}

/** The moment of another thread that a new one goes on from. */
export interface Origin {
  thread: string;
  seq: number;
  messages: Message[];
  state: unknown;
}

/** What a person sends: words and files, to an agent, with values from its form. */
export interface Given {
  message: string | Part[];
  agent: string | null;
  from?: string | null;
  onBusy?: OnBusy;
  forwarded?: Record<string, unknown>;
}

/** Where a run begins in the log. */
interface Start {
  seq: number;
  run: string;
}

/** What stands in the side panel besides the inspector: one long text. */
export interface Beside {
  title: string;
  text: string | null;
}

export class Session {
  readonly shown = signal<Shown | null>(null);
  readonly runs = signal<RunRow[]>([]);
  readonly size = signal<Size | null>(null);
  readonly asks = signal<ReadonlyMap<number, Item[]>>(new Map()); // seq of a run's start -> what a person wrote
  readonly sent = signal<Item[]>([]); // what this page wrote last, until the log's own was read
  readonly stalled = signal(false); // the newest run's process died, and nothing has resumed it
  readonly agent = signal<string | null>(null); // whose thread it is, once that was read
  readonly draft = signal("");
  readonly files = signal<File[]>([]); // that go with the message
  readonly branchFrom = signal<string | null>(null);
  readonly origin = signal<Origin | null>(null); // in a new thread: where it goes on from
  readonly preview = signal<Preview | null>(null);
  readonly trouble = signal<string | null>(null); // the last order that was refused
  readonly sending = signal(false);
  readonly beside = signal<Beside | null>(null);
  readonly moment = signal<number | null>(null); // the seq that is looked at; null: now
  readonly earlier = signal(0); // runs before the first one that was opened
  readonly history: History | null;
  readonly queue: Queue;
  /** Scrolls to a row; set by what draws the rows. */
  reveal: (key: string) => void = () => {};
  /** Puts the cursor where messages are written; set by what draws that. */
  write: () => void = () => {};

  readonly rows = computed<Item[]>(() => this.composed());
  readonly working = computed(() => this.shown.value?.view.status === "in_progress" && !this.stalled.value);
  readonly questions = computed<Interrupt[]>(() => {
    const view = this.shown.value?.view;
    return view?.status === "interrupted" ? view.interrupts : NO_QUESTIONS;
  });

  readonly annotations = computed(() => this.shown.value?.view.annotations ?? NONE);

  private closed = false;
  private stop: () => void = () => {};
  private status = "";
  private announced: Queued[] | null = null;
  private starts: Start[] = []; // of runs that are known before their rows
  private readonly timer: ReturnType<typeof setInterval>;

  constructor(
    readonly api: Api,
    readonly thread: string | null,
    private readonly moved: (thread: string) => void,
  ) {
    this.history = thread === null ? null : new History(api, thread);
    this.queue = new Queue(
      api,
      thread,
      () => this.shown.value?.view.runs ?? {},
      (work) => this.order(work),
    );
    this.timer = setInterval(() => this.look(), PATIENT);
    if (thread !== null) void this.open(thread);
  }

  close(): void {
    this.closed = true;
    this.stop();
    clearInterval(this.timer);
  }

  /** What no envelope tells: a run that lost its process, and a queue that changed while no run was active. */
  private look(): void {
    if (this.shown.value?.view.status === "in_progress") void this.drawRuns();
    if (this.queue.waiting.value.length > 0) void this.queue.draw();
  }

  // --------------------------------------------------------------- reading

  /** A long thread is opened at its newest runs: what came before is one click away. */
  private async open(thread: string): Promise<void> {
    const runs = this.api.runs(thread).then(
      ({ runs }) => {
        const newest = runs.at(-1);
        if (newest !== undefined) this.starts = [{ seq: newest.first_seq, run: newest.run_id }];
        void this.drawAsks(); // its words are here when its rows come
        return runs;
      },
      () => [],
    );
    const soon = await Promise.race([runs, new Promise<null>((done) => setTimeout(done, HEAD_START, null))]);
    if (this.closed || (soon !== null && this.openTail(thread, soon))) return;
    if (soon !== null) await this.drawPreview(thread, soon); // before the server is busy with the rest
    if (this.closed) return;
    this.watchFrom(thread, undefined);
    if (soon !== null) return;
    const late = await runs;
    if (!this.closed && !this.openTail(thread, late)) await this.drawPreview(thread, late);
  }

  /** A single run that is too long to be read at once: its newest messages first, from the snapshot. */
  private async drawPreview(thread: string, runs: RunRow[]): Promise<void> {
    const newest = runs.at(-1);
    if ((newest?.last_seq ?? 0) <= LONG) return;
    const found = (await this.api.snapshot(thread).catch(() => null)) as { messages?: Message[] } | null;
    if (this.closed || found === null || newest === undefined || this.shown.value?.link.state === "live") return;
    const messages = (found.messages ?? []).map((each, at) => ({
      ...each,
      id: String(each.metadata?.["id"] ?? at),
      activityType: String(each.metadata?.["activity_type"] ?? ""),
    }));
    this.preview.value = { messages, status: newest.status, events: newest.last_seq };
  }

  /** Watch the newest runs alone, where there are too many events to read all of them first. */
  private openTail(thread: string, runs: RunRow[]): boolean {
    const total = runs.at(-1)?.last_seq ?? 0;
    const first = runs.find((run) => total - run.first_seq < LONG) ?? runs.at(-1);
    if (total <= LONG || first === undefined || first.first_seq <= 1) return false;
    this.earlier.value = runs.indexOf(first);
    this.watchFrom(thread, first.first_seq - 1);
    return true;
  }

  private watchFrom(thread: string, after: number | undefined): void {
    this.stop();
    let current = true;
    const onChange = (view: View, link: Link): void => {
      if (current && !this.closed) this.changed(view, link);
    };
    const close = watch({
      base: this.api.base.href,
      thread,
      onChange,
      ...(after === undefined ? {} : { after }),
      ...(this.api.headers ? { headers: this.api.headers } : {}),
    });
    this.stop = () => {
      current = false;
      close();
    };
  }

  /** Open the thread from its beginning. */
  showEarlier(): void {
    if (this.thread === null) return;
    this.earlier.value = 0;
    this.watchFrom(this.thread, undefined);
  }

  private changed(view: View, link: Link): void {
    batch(() => {
      if (link.state !== "recovering") this.preview.value = null;
      this.shown.value = { view, link: { ...link } };
      const status = `${view.run} ${view.status}`;
      if (link.state !== "recovering" && (status !== this.status || view.queued !== this.announced)) {
        this.announced = view.queued;
        void this.queue.draw();
      }
      if (status === this.status) return;
      this.status = status;
      this.stalled.value = false;
      void this.drawRuns();
      void this.drawAsks();
    });
    if (this.history?.wanted) void this.history.refresh();
  }

  private composed(): Item[] {
    const items = this.shown.value?.view.items ?? [];
    const asks = this.asks.value;
    const sent = this.sent.value;
    return this.settled(items).flatMap((item) => {
      if (item.kind === "note" && item["name"] === PREDICTION) return [];
      if (item.kind !== "run") return [item];
      return [item, ...(asks.get(item["seq"] as number) ?? sent.filter(({ run }) => run === item.run))];
    });
  }

  /** What a dead process had under way is not under way any more, and what it had half written is taken back. */
  private settled(items: Item[]): Item[] {
    if (!this.stalled.value) return items;
    return items.map((item) => {
      if (item.state === "running") return { ...item, state: "cut short" };
      return item["complete"] === false ? { ...item, complete: true, broken: true } : item;
    });
  }

  readonly drawRuns = steady(async () => {
    if (this.thread === null) return;
    const { runs, size } = await this.api.runs(this.thread);
    if (this.closed) return;
    batch(() => {
      this.runs.value = runs;
      this.size.value = size;
      const newest = runs.at(-1);
      this.stalled.value = newest?.status === "truncated" && this.shown.value?.view.run === newest.run_id;
    });
  });

  private readonly drawAsks = steady(async () => {
    const thread = this.thread;
    const starts = (this.shown.value?.view.items ?? []).filter((item) => item.kind === "run").reverse();
    for (const { seq, run } of [...this.starts, ...(starts as unknown as Start[])]) {
      if (thread === null || this.asks.value.has(seq)) continue;
      const { events } = await this.api.events(thread, seq - 1, 1);
      if (this.closed) return;
      if (this.agent.value === null) this.agent.value = agentOf(events[0]?.event); // of the newest run: it comes first
      this.asks.value = new Map([...this.asks.value, [seq, asksOf(events[0]?.event, run)]]);
    }
  });

  // ----------------------------------------------------------------- doing

  /** Do something that the server may refuse; whether it was done. */
  async order(work: () => Promise<Started | unknown>): Promise<boolean> {
    this.sending.value = true;
    this.trouble.value = null;
    try {
      await work();
      return true;
    } catch (error) {
      if (!(error instanceof RequestFailed)) throw error;
      if (!this.closed) this.trouble.value = error.message;
      return false;
    } finally {
      this.sending.value = false;
    }
  }

  /** Start a run with a message: behind `from`, else at the thread's end. */
  async say({ message, agent, from = this.branchFrom.value, onBusy, forwarded }: Given): Promise<boolean> {
    if (this.sending.value) return false;
    const origin = this.origin.value;
    return this.order(async () => {
      const started =
        origin !== null && agent !== null
          ? await this.api.begin(agent, {
              messages: [...whole(origin.messages), { id: crypto.randomUUID(), role: "user", content: message }],
              state: origin.state,
              forwardedProps: forwarded ?? {},
            })
          : await this.api.say(this.thread, {
              message,
              agent,
              from_run: from,
              ...(onBusy ? { on_busy: onBusy } : {}),
              ...(forwarded ? { forwarded_props: forwarded } : {}),
            });
      if (this.closed) return;
      this.branchFrom.value = null;
      if (started.status === "started") this.sent.value = sentAs(started.run_id, message);
      if (this.thread !== null) void this.queue.draw();
      if (started.thread_id !== this.thread) this.moved(started.thread_id);
    });
  }

  answer(answers: Answer[]): Promise<boolean> {
    const thread = this.thread;
    return thread === null ? Promise.resolve(false) : this.order(() => this.api.resume(thread, answers));
  }

  resume(): Promise<boolean> {
    const thread = this.thread;
    return thread === null ? Promise.resolve(false) : this.order(() => this.api.resume(thread));
  }

  /** Write the next message behind a run, or from the thread's end. */
  branch(run: string | null, text = this.draft.value): void {
    batch(() => {
      this.branchFrom.value = run;
      this.draft.value = text;
      this.moment.value = null;
    });
    this.write();
  }

  /** The thread after one of its events, as a new thread may go on from it. */
  async originAt(seq: number): Promise<Origin | null> {
    const { history, thread } = this;
    if (history === null || thread === null) return null;
    await history.refresh();
    const { messages, state } = history.at(seq);
    return { thread, seq, messages, state };
  }

  /** The run that ends with this event, if one does: a branch of it stays in the thread. */
  runEndingAt(seq: number): RunRow | undefined {
    return this.runs.value.find((run) => run.last_seq === seq && run.status !== "in_progress");
  }

  /** The id of this browser's thumb on a message. */
  thumb(message: string): string {
    return `thumb ${browser()} ${message}`;
  }

  /** Give a thumb to a message, or take it back. */
  rate(message: string, type: string | null): Promise<boolean> {
    const { thread } = this;
    const payload = type === null ? null : { messageId: message };
    const thumb = { id: this.thumb(message), metaType: type ?? "thumbs_up", payload };
    return thread === null ? Promise.resolve(false) : this.order(() => this.api.annotate(thread, thumb));
  }

  halt(): Promise<boolean> {
    const run = this.shown.value?.view.run;
    return run == null ? Promise.resolve(false) : this.order(() => this.api.stop(run));
  }

  /** The message that a run began with. */
  askedOf(run: string): Item | undefined {
    for (const rows of this.asks.value.values()) {
      const found = rows.find((row) => row.run === run && row["answer"] !== true);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** The run that a run goes on from; null for a first one. */
  parentOf(run: string): string | null {
    return this.runs.value.find((each) => each.run_id === run)?.parent ?? null;
  }

  /** Put a tool's whole result into the side panel. */
  async showResult(call: string, name: string): Promise<void> {
    if (this.thread === null) return;
    this.beside.value = { title: `${name}: result`, text: null };
    let text: string;
    try {
      const { content } = await this.api.result(this.thread, call);
      text = typeof content === "string" ? content : JSON.stringify(content, null, 2);
    } catch (error) {
      text = error instanceof Error ? error.message : String(error);
    }
    if (!this.closed && this.beside.value?.title === `${name}: result`)
      this.beside.value = { title: `${name}: result`, text };
  }
}

/** A name of this browser, so that its own thumbs are known as such. */
function browser(): string {
  try {
    return (localStorage["runcast.browser"] ??= crypto.randomUUID().slice(0, 8));
  } catch {
    return "anyone"; // a page that may store nothing
  }
}

/** The messages that an agent can go on from: without thoughts, and without calls that have no result. */
export function whole(messages: readonly Message[]): Message[] {
  const answered = new Set(messages.map(({ toolCallId }) => toolCallId));
  return messages.flatMap((message) => {
    if (message.role === "reasoning" || message.role === "activity") return [];
    if (message.role === "user" && message.content === "") return []; // it had only begun
    if (message.toolCalls === undefined) return [message];
    const { toolCalls, ...rest } = message;
    const kept = toolCalls.filter(({ id }) => answered.has(id));
    if (kept.length > 0) return [{ ...rest, toolCalls: kept }];
    return rest.content ? [rest] : [];
  });
}
