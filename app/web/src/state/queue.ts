// The messages that wait in a thread, and what the next one does while a run is active.
import { computed, signal } from "@preact/signals";
import type { OnBusy, Queued, Run } from "../client/runcast.js";
import type { AgentRow, Api } from "./api.js";
import { steady } from "./steady.js";

type Order = (work: () => Promise<unknown>) => Promise<boolean>;

/** What a message can do while a run is active, in the words of the page. */
export const CHOICES: { value: OnBusy; label: string; title: string }[] = [
  { value: "queue", label: "Wait for its end", title: "The message waits, and begins when the run ends" },
  {
    value: "steer",
    label: "Steer it",
    title: "The message reaches the agent at its next step, else when the run ends",
  },
  { value: "interrupt", label: "Stop it first", title: "The run is stopped; what it finished stays" },
  {
    value: "rollback",
    label: "Take it back first",
    title: "The run is taken back, and the message begins where it began",
  },
];

/** What a message does when nobody chose: as the host has it, and it waits where the host refuses. */
export function usual(agent: AgentRow | undefined): OnBusy {
  const own = agent?.on_busy;
  return own === undefined || own === "refuse" ? "queue" : own;
}

/** Those that have not begun; the same list when all have not. */
export function unbegun(listed: Queued[], runs: Readonly<Record<string, Run>>): Queued[] {
  return listed.some(({ run_id }) => run_id in runs) ? listed.filter(({ run_id }) => !(run_id in runs)) : listed;
}

export class Queue {
  /** A person's choice for the next message; null for the usual. */
  readonly choice = signal<OnBusy | null>(null);
  /** The message that is being edited. */
  readonly editing = signal<string | null>(null);
  readonly waiting = computed<Queued[]>(() => unbegun(this.listed.value, this.runs()));
  private readonly listed = signal<Queued[]>([]);

  constructor(
    private readonly api: Api,
    private readonly thread: string | null,
    private readonly runs: () => Readonly<Record<string, Run>>,
    private readonly order: Order,
  ) {}

  /** The server has whole messages, and knows of those that changed while no run could announce it. */
  readonly draw = steady(async () => {
    if (this.thread !== null) this.listed.value = (await this.api.queue(this.thread)).messages;
  });

  /** Change the words of a message that waits; whether that was in time. */
  async edit(run: string, text: string): Promise<boolean> {
    const { thread } = this;
    if (thread === null) return false;
    const done = await this.changed(() => this.api.edit(thread, run, text));
    if (this.editing.value === run) this.editing.value = null;
    return done;
  }

  async withdraw(run: string): Promise<boolean> {
    const { thread } = this;
    return thread !== null && this.changed(() => this.api.withdraw(thread, run));
  }

  private async changed(work: () => Promise<{ messages: Queued[] }>): Promise<boolean> {
    const done = await this.order(async () => {
      this.listed.value = (await work()).messages;
    });
    if (!done) void this.draw();
    return done;
  }
}
