// The thread's events, fetched when something asks for them, and the conversation at any moment of the past.
import { signal } from "@preact/signals";
import type { Entry } from "../fold/events.js";
import { Conversation, type Moment } from "../fold/conversation.js";
import type { Api } from "./api.js";
import { steady } from "./steady.js";

const PAGE = 1000; // events in one answer
const bound = (epoch: string, mark: string): string => (mark === "" ? epoch : `${epoch}~${mark}`);
const EVERY = 500; // events between two conversations that are kept

export class History {
  /** Grows whenever more was read; read it to be drawn again. */
  readonly revision = signal(0);
  readonly complete = signal(false);
  readonly refused = signal<string | null>(null);
  entries: Entry[] = [];
  wanted = 0; // how many parts of the page show events, and want new ones
  private epoch = "";
  private mark = "";
  private kept: { count: number; conversation: Conversation }[] = [];

  constructor(
    private readonly api: Api,
    private readonly thread: string,
  ) {}

  /** Read whatever the log has behind what is here. */
  readonly refresh = steady(async () => {
    for (;;) {
      const after = this.entries.at(-1)?.seq ?? 0;
      const page = await this.api.events(this.thread, after, PAGE, bound(this.epoch, this.mark));
      if (!page.recovered) {
        this.entries = [];
        this.kept = [];
        const lost = this.mark !== "";
        this.mark = "";
        if (!lost && (this.epoch === "" || this.epoch === page.epoch)) {
          this.refused.value = "The events of this thread were pruned: what is left is in its snapshot.";
          return;
        }
        this.epoch = page.epoch;
        continue;
      }
      this.epoch = page.epoch;
      this.mark = page.mark ?? "";
      this.entries.push(...page.events);
      this.revision.value += 1;
      if (!page.more) break;
    }
    this.complete.value = true;
    this.revision.value += 1;
  });

  /** Read the events and keep up with them, until the returned function is called. */
  follow(): () => void {
    this.wanted += 1;
    void this.refresh();
    return () => {
      this.wanted -= 1;
    };
  }

  get head(): number {
    return this.entries.at(-1)?.seq ?? 0;
  }

  /** How many events have this `seq` or a smaller one. */
  countAt(seq: number): number {
    let low = 0;
    let high = this.entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.entries[middle] as Entry).seq <= seq) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The conversation after the event `seq`. */
  at(seq: number): Moment {
    const count = this.countAt(seq);
    const from = this.kept.findLast((each) => each.count <= count);
    const conversation = from?.conversation.copy() ?? new Conversation();
    for (let n = from?.count ?? 0; n < count; n += 1) {
      conversation.feed((this.entries[n] as Entry).event);
      if ((n + 1) % EVERY === 0 && n + 1 > (this.kept.at(-1)?.count ?? 0))
        this.kept.push({ count: n + 1, conversation: conversation.copy() });
    }
    return conversation.moment();
  }
}
