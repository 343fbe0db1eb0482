// The reader's side of the envelope: what to do with one that arrived, whatever the line did to it.
//
// The whole rule: `seq <= last` drop, `prev == last` apply, else fetch `after=last`. Parts of one entry count up and
// move the position after the last one; a gap is fetched; another epoch, or an envelope of another history, starts over
// from the snapshot. A run's `mark` is the seq at which it begins, a dot and random characters: a log that lost its tail
// gives seqs out again, and a position is bound to its history by the mark behind its epoch, `epoch~mark`.
// The same machine as runcast.broadcast.reader in Python; one test drives both.
import type { Envelope } from "./types.js";

export type Verdict = "apply" | "drop" | "fetch" | "restart";

const BOUND = /^(.*)~([0-9]{1,16}\.[0-9A-Za-z]{1,32})$/s;

/** The reader's rule. */
export class Reader {
  /** `seq` of the last entry that was applied whole; null: the first envelope decides. */
  last: number | null;
  /** Of the last entry that was applied whole; "" when it is not known. */
  mark = "";
  private incarnation: string | null = null;
  /** The entry of which parts were applied. */
  seq = 0;
  /** How many of them. */
  part = 0;

  constructor({ last = null, epoch = null }: { last?: number | null; epoch?: string | null } = {}) {
    this.last = last;
    this.epoch = epoch;
  }

  /** The log's epoch, bound to the history of what was applied: what the reader sends when it comes back. */
  get epoch(): string | null {
    return this.mark === "" || this.incarnation === null ? this.incarnation : `${this.incarnation}~${this.mark}`;
  }

  set epoch(history: string | null) {
    const found = history === null ? null : BOUND.exec(history);
    this.incarnation = found?.[1] ?? history;
    this.mark = found?.[2] ?? "";
  }

  /** What to do with this envelope. `fetched`: it came from the log, so a gap is final. */
  take(envelope: Envelope, { fetched = false }: { fetched?: boolean } = {}): Verdict {
    if (this.incarnation === null) this.incarnation = envelope.epoch;
    else if (envelope.epoch !== this.incarnation) return "restart";
    if (this.last === null) this.last = envelope.prev;
    if (this.contradicts(this.last, envelope)) return "restart";
    if (envelope.seq <= this.last) return "drop";
    const [part, of] = envelope.part ?? [1, 1];
    const applied = envelope.seq === this.seq ? this.part : 0;
    if (part <= applied) return "drop";
    if (envelope.prev !== this.last || part !== applied + 1) return "fetch";
    if (envelope.type === "agent.gap" && !fetched) return "fetch";
    if (part === of) {
      this.last = envelope.seq;
      this.mark = envelope.mark ?? "";
      this.seq = this.part = 0;
    } else {
      this.seq = envelope.seq;
      this.part = part;
    }
    return "apply";
  }

  /** Whether an envelope is of another history: a run is an unbroken stretch of its thread. */
  private contradicts(last: number, { seq, mark = "" }: Envelope): boolean {
    if (this.mark === "" || mark === "" || mark === this.mark) return false;
    return seq > last ? parseInt(mark) <= last : parseInt(this.mark) <= seq;
  }

  /** Stand at a snapshot: everything up to `last` is in it. */
  start({ last, epoch }: { last: number; epoch: string }): void {
    this.last = last;
    this.epoch = epoch;
    this.seq = this.part = 0;
  }
}
