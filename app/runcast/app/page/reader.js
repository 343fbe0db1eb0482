// The reader's side of the envelope: what to do with one that arrived, whatever the line did to it.
//
// The whole rule: `seq <= last` drop, `prev == last` apply, else fetch `after=last`. Parts of one entry count up and
// move the position after the last one; a gap is fetched; another epoch starts over from the snapshot.
// The same machine as runcast.broadcast.reader in Python; one test drives both.

export class Reader {
  constructor({ last = null, epoch = null } = {}) {
    this.last = last; // seq of the last entry told in whole; null: the first envelope decides
    this.epoch = epoch;
    this.seq = 0; // the entry of which parts were told
    this.part = 0; // and how many of them
  }

  /** "apply" | "drop" | "fetch" | "restart". `fetched`: it came from the log, a gap is final. */
  take(envelope, { fetched = false } = {}) {
    if (this.epoch === null) this.epoch = envelope.epoch;
    else if (envelope.epoch !== this.epoch) return "restart";
    if (this.last === null) this.last = envelope.prev;
    if (envelope.seq <= this.last) return "drop";
    const [part, of] = envelope.part ?? [1, 1];
    const told = envelope.seq === this.seq ? this.part : 0;
    if (part <= told) return "drop";
    if (envelope.prev !== this.last || part !== told + 1) return "fetch";
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
  start({ last, epoch }) {
    this.last = last;
    this.epoch = epoch;
    this.seq = this.part = 0;
  }
}
