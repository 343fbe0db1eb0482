// src/client/reader.ts
/** The reader's rule. */
var Reader = class {
	/** `seq` of the last entry that was applied whole; null: the first envelope decides. */
	last;
	epoch;
	/** The entry of which parts were applied. */
	seq = 0;
	/** How many of them. */
	part = 0;
	constructor({ last = null, epoch = null } = {}) {
		this.last = last;
		this.epoch = epoch;
	}
	/** What to do with this envelope. `fetched`: it came from the log, so a gap is final. */
	take(envelope, { fetched = false } = {}) {
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
	start({ last, epoch }) {
		this.last = last;
		this.epoch = epoch;
		this.seq = this.part = 0;
	}
};
export { Reader };
