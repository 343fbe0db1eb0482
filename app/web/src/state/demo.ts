// The worker of `runcast demo`: whether it lives, and the orders that kill it and bring it back.
import { signal } from "@preact/signals";
import type { Envelope } from "../client/runcast.js";
import type { Api } from "./api.js";
import type { Desk } from "./desk.js";
import { steady } from "./steady.js";

const OFTEN = 1000; // milliseconds between two looks at the worker

export class DemoWorker {
  readonly worker = signal<number | null | undefined>(undefined); // its process; null: dead; undefined: not known yet
  readonly kills = signal(0);
  readonly busy = signal(false);

  constructor(
    private readonly api: Api,
    private readonly desk: Desk,
  ) {
    void this.look();
    setInterval(() => document.hidden || void this.look(), OFTEN);
  }

  private readonly look = steady(async () => this.saw((await this.api.worker()).worker));

  private saw(worker: number | null): void {
    if (worker === null && this.worker.peek()) this.kills.value += 1;
    this.worker.value = worker;
    if (worker === null) void this.desk.session.value.drawRuns(); // its lease runs out: the run is cut short
  }

  async order(order: "kill" | "resume"): Promise<void> {
    this.busy.value = true;
    await this.desk.session.value.order(async () => this.saw((await this.api.worker(order)).worker));
    this.busy.value = false;
  }
}

/** How many events no envelope here accounts for: each one stands for those behind `prev`, up to its `seq`. */
export function lostOf(envelopes: readonly Envelope[]): number {
  let at = envelopes[0]?.prev ?? 0;
  let lost = 0;
  for (const { prev, seq } of envelopes) {
    if (seq <= at) continue;
    lost += Math.max(0, prev - at);
    at = seq;
  }
  return lost;
}
