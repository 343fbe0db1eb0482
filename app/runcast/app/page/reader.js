// src/client/reader.ts
var BOUND = /^(.*)~([0-9]{1,16}\.[0-9A-Za-z]{1,32})$/s;
/** The reader's rule. */
var Reader = class {
	/** `seq` of the last entry that was applied whole; null: the first envelope decides. */
	last;
	/** Of the last entry that was applied whole; "" when it is not known. */
	mark = "";
	incarnation = null;
	/** The entry of which parts were applied. */
	seq = 0;
	/** How many of them. */
	part = 0;
	constructor({ last = null, epoch = null } = {}) {
		this.last = last;
		this.epoch = epoch;
	}
	/** The log's epoch, bound to the history of what was applied: what the reader sends when it comes back. */
	get epoch() {
		return this.mark === "" || this.incarnation === null ? this.incarnation : `${this.incarnation}~${this.mark}`;
	}
	set epoch(history) {
		const found = history === null ? null : BOUND.exec(history);
		this.incarnation = found?.[1] ?? history;
		this.mark = found?.[2] ?? "";
	}
	/** What to do with this envelope. `fetched`: it came from the log, so a gap is final. */
	take(envelope, { fetched = false } = {}) {
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
	contradicts(last, { seq, mark = "" }) {
		if (this.mark === "" || mark === "" || mark === this.mark) return false;
		return seq > last ? parseInt(mark) <= last : parseInt(this.mark) <= seq;
	}
	/** Stand at a snapshot: everything up to `last` is in it. */
	start({ last, epoch }) {
		this.last = last;
		this.epoch = epoch;
		this.seq = this.part = 0;
	}
};
export { Reader };
