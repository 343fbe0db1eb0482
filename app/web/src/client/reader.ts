// The reader's side of the envelope: what to do with one that arrived, whatever the line did to it.
//
// The whole rule: `seq <= last` drop, `prev == last` apply, else fetch `after=last`. Parts of one entry count up and
// move the position after the last one; a gap is fetched; another epoch starts over from the snapshot.
// The same machine as runcast.broadcast.reader in Python; one test drives both.
import type { Envelope } from "./types.js";

export type Verdict = "apply" | "drop" | "fetch" | "restart";

/** The reader's rule. */
export class Reader {
  /** `seq` of the last entry that was applied whole; null: the first envelope decides. */
  last: number | null;
  epoch: string | null;
  /** The entry of which parts were applied. */
  seq = 0;
  /** How many of them. */
  part = 0;

  constructor({ last = null, epoch = null }: { last?: number | null; epoch?: string | null } = {}) {
    this.last = last;
    this.epoch = epoch;
  }

  /** What to do with this envelope. `fetched`: it came from the log, so a gap is final. */
  take(envelope: Envelope, { fetched = false }: { fetched?: boolean } = {}): Verdict {
    if (this.epoch === null) this.epoch = envelope.epoch;
    else if (envelope.epoch !== this.epoch) return "restart";
    if (this.last === null) this.last = envelope.prev;
    if (envelope.seq <= this.last) return "drop";
    const [part, of] = envelope.part ?? [1, 1];
    const applied = envelope.seq === this.seq ? this.part : 0;
    if (part <= applied) return "drop";
    if (envelope.prev !== this.last || part !== applied + 1) return "fetch";
    if (envelope.type === "agent.gap" && !fetched) return "fetch";
    if (part === of) {
      this.last = envelope.seq;
      this.seq = this.part = 0;
    } else {
      this.seq = envelope.seq;
      this.part = part;
    }
    return "apply";
  }

  /** Stand at a snapshot: everything up to `last` is in it. */
  start({ last, epoch }: { last: number; epoch: string }): void {
    this.last = last;
    this.epoch = epoch;
    this.seq = this.part = 0;
  }
}
