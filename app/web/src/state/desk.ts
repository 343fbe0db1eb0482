// The page as a whole: which thread is looked at, the list of threads, the agents, and what is open.
import { batch, type Signal, signal } from "@preact/signals";
import { type AgentRow, Api, type Drawing, type PageOptions, type ThreadRow } from "./api.js";
import { firstWords, titleOf } from "./asks.js";
import { DemoWorker } from "./demo.js";
import { type Origin, Session } from "./session.js";
import { steady } from "./steady.js";
import { Values } from "./values.js";

export type Tab = "timeline" | "graph" | "runs" | "past" | "raw";

const WIDE = matchMedia("(min-width: 70rem)"); // there is room for the inspector beside the thread
const OFTEN = 5000; // milliseconds between two looks at the list of threads
const TITLED = 200; // newest threads that are named by their first message
const AT_ONCE = 4; // titles that are fetched at the same time

export class Desk {
  readonly session: Signal<Session>;
  readonly threads = signal<ThreadRow[] | null>(null);
  readonly refused = signal(false);
  readonly titles = signal<ReadonlyMap<string, string | null>>(new Map());
  readonly agents = signal<string[]>([]);
  readonly rows = signal<ReadonlyMap<string, AgentRow>>(new Map()); // agents by name
  readonly drawings = signal<ReadonlyMap<string, Drawing>>(new Map()); // of agents that can draw themselves
  readonly values = new Values();
  readonly options = signal<PageOptions>({ prices: {}, currency: "$", demo: false });
  readonly demo = signal<DemoWorker | null>(null);
  readonly renaming = signal(false);
  readonly agent = signal<string | null>(null); // null: the thread's own, or the first one in a new thread
  readonly tab = signal<Tab>("timeline");
  readonly inspecting = signal(WIDE.matches);
  readonly listing = signal(false); // the list of threads, where it lies over the page
  readonly helping = signal(false);
  readonly finding = signal(false);
  private chosen: boolean; // whether a person has chosen what to look at

  /** `alone`: one thread in somebody else's page, without a list of threads and an address of its own. */
  constructor(
    readonly api: Api,
    thread: string | null,
    private readonly alone = false,
  ) {
    this.chosen = thread !== null;
    this.session = signal(this.begin(thread));
    void this.drawAgents();
    void this.drawOptions();
    if (alone) return;
    WIDE.addEventListener("change", ({ matches }) => (this.inspecting.value = matches)); // it would lie over the thread
    void this.drawThreads();
    setInterval(() => document.hidden || void this.drawThreads(), OFTEN); // threads that are begun elsewhere
  }

  private begin(thread: string | null): Session {
    return new Session(this.api, thread, (started) => void this.show(started));
  }

  /** Look at a thread; null for a new one, with a message that is begun. */
  show(thread: string | null, draft = "", origin: Origin | null = null): Session {
    const former = this.session.value;
    this.chosen = true;
    former.close();
    batch(() => {
      this.session.value = this.begin(thread);
      this.session.value.draft.value = draft;
      this.session.value.origin.value = origin;
      this.agent.value = null;
      this.listing.value = false;
      this.finding.value = false;
      this.renaming.value = false;
    });
    if (!this.alone) {
      history.replaceState(null, "", thread === null ? location.pathname : `?thread=${encodeURIComponent(thread)}`);
      void this.drawThreads();
    }
    if (draft !== "" || origin !== null) requestAnimationFrame(() => this.session.value.write());
    return this.session.value;
  }

  /** The agent that the next message goes to; null: whichever the thread has. */
  get chosenAgent(): string | null {
    return this.agent.value ?? (this.session.value.thread === null ? (this.agents.value[0] ?? null) : null);
  }

  /** The agent that the next message goes to, as far as the page knows which. */
  get agentRow(): AgentRow | undefined {
    const only = this.agents.value.length === 1 ? this.agents.value[0] : undefined;
    return this.rows.value.get(this.chosenAgent ?? this.session.value.agent.value ?? only ?? "");
  }

  /** A thread may have begun. */
  async newThreads(): Promise<void> {
    if (!this.alone) await this.drawThreads();
  }

  /** What a thread is called: what people named it; its first message, as far as that is known yet; its id else. */
  titleOf(thread: string | null): string {
    if (thread === null) return "New thread";
    const given = this.threads.value?.find(({ thread_id }) => thread_id === thread)?.title;
    if (given != null) return given;
    const known = this.titles.value.get(thread);
    const session = this.session.value;
    if (known != null || session.thread !== thread || session.earlier.value > 0) return known ?? thread;
    return firstWords(session.rows.value.find((row) => (row.kind as string) === "ask")?.["text"]) ?? thread;
  }

  /** A person began to write: what is looked at stays. */
  settle(): void {
    this.chosen = true;
  }

  readonly drawThreads = steady(async () => {
    let threads: ThreadRow[] = [];
    try {
      ({ threads } = await this.api.threads());
      this.refused.value = false;
    } catch (error) {
      this.refused.value = true;
      throw error;
    }
    threads.sort((one, other) => other.updated_at - one.updated_at);
    this.threads.value = threads;
    const [newest] = threads;
    if (!this.chosen && newest) this.show(newest.thread_id);
    void this.drawTitles();
  });

  private readonly drawTitles = steady(async () => {
    const missing = (this.threads.value ?? [])
      .slice(0, TITLED)
      .filter(({ thread_id }) => !this.titles.value.has(thread_id));
    for (let n = 0; n < missing.length; n += AT_ONCE) {
      const some = missing.slice(n, n + AT_ONCE);
      const found = await Promise.all(some.map(({ thread_id }) => this.api.events(thread_id, 0, 1)));
      const titles = new Map(this.titles.value);
      some.forEach(({ thread_id }, index) => {
        const event = found[index]?.events[0]?.event;
        if (event !== undefined || found[index]?.recovered === false) titles.set(thread_id, titleOf(event));
      });
      this.titles.value = titles;
    }
  });

  /** Give the thread another title; an empty one takes it away. */
  async rename(title: string): Promise<void> {
    const { thread } = this.session.value;
    this.renaming.value = false;
    if (thread === null) return;
    const wanted = title.trim() === "" ? null : title.trim();
    if (await this.session.value.order(() => this.api.rename(thread, wanted))) await this.drawThreads();
  }

  private readonly drawAgents = steady(async () => {
    const { agents } = await this.api.agents();
    batch(() => {
      this.rows.value = new Map(agents.map((row) => [row.name, row]));
      this.agents.value = agents.map(({ name }) => name);
    });
    for (const { name } of agents) {
      const drawing = await this.api.drawing(name);
      if (drawing.nodes.length > 0) this.drawings.value = new Map([...this.drawings.value, [name, drawing]]);
    }
  });

  private readonly drawOptions = steady(async () => {
    this.options.value = await this.api.options();
    if (this.options.value.demo && this.demo.value === null) this.demo.value = new DemoWorker(this.api, this);
  });

  /** Open the inspector at one of its tabs. */
  inspect(tab: Tab): void {
    batch(() => {
      this.tab.value = tab;
      this.inspecting.value = true;
    });
  }
}
