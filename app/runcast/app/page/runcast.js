// src/client/echo.ts
/**
* The channel of a thread, as the hub names it: the id is one segment, in which letters, digits and `-_@` stand for
* themselves and every other byte of its UTF-8 is `=` and two hex digits.
*/
function channelFor(thread) {
	const plain = /[-a-zA-Z0-9_@]/;
	const name = Array.from(new TextEncoder().encode(thread), (byte) => {
		const character = String.fromCharCode(byte);
		return plain.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
	}).join("");
	if (name === "" || name.length > 186) throw new RangeError("no channel name holds this thread id; use watch() instead");
	return `agent.${name}`;
}
/**
* For Laravel Echo or pusher-js: an authorizer that sends the position along, so that the hub replays what was missed.
*
*   const positions = new Map();            // channel name -> Reader
*   new Pusher(key, { …, channelAuthorization: { customHandler: authorizer({ endpoint, positions }) } });
*/
function authorizer({ endpoint = "/broadcasting/auth", headers = {}, positions = /* @__PURE__ */ new Map() }) {
	return async ({ socketId, channelName }, callback) => {
		const form = new URLSearchParams({
			socket_id: socketId,
			channel_name: channelName
		});
		const reader = positions.get(channelName);
		if (reader?.epoch != null) {
			form.set("epoch", reader.epoch);
			form.set("offset", String(reader.last ?? 0));
		}
		try {
			const own = typeof headers === "function" ? await headers() : headers;
			const response = await fetch(endpoint, {
				method: "POST",
				headers: own,
				body: form
			});
			if (!response.ok) throw new Error(`the auth endpoint answered ${response.status}`);
			callback(null, await response.json());
		} catch (error) {
			callback(error instanceof Error ? error : new Error(String(error)), null);
		}
	};
}
// src/client/patch_budget.ts
/** A patch that would create more than a patch or a document may hold. */
var PatchTooLarge = class extends Error {};
/** A patch may copy so much: `copy` alone makes more than its own size, and nested in itself it doubles each time. */
var COPIES = {
	nodes: 2e4,
	characters: 2 ** 20,
	depth: 256
};
var DOCUMENT = {
	nodes: 1e6,
	characters: 2 ** 26,
	depth: 250
};
var SLACK = {
	nodes: DOCUMENT.nodes / 16,
	characters: DOCUMENT.characters / 16,
	depth: DOCUMENT.depth
};
var growth = /* @__PURE__ */ new WeakMap();
/** The growth of a document with this patch. Throws PatchTooLarge when it would be too large. */
function fits(document, operations) {
	const size = {
		nodes: 0,
		characters: 0,
		depth: 0
	};
	let rise = 0;
	for (const { op, path, from, value } of operations) {
		const levels = path.split("/").length - 1;
		if (op === "add" || op === "replace") {
			const written = measured(value, DOCUMENT);
			size.nodes += written.nodes;
			size.characters += written.characters;
			size.depth = Math.max(size.depth, levels + written.depth);
		} else if (op === "move" || op === "copy") {
			rise += Math.max(0, levels - ((from ?? "").split("/").length - 1));
			size.nodes += op === "copy" ? 1 : 0;
		}
	}
	const grown = added(isObject(document) ? growth.get(document) : void 0, size);
	if (rise === 0 && (size.nodes === 0 || within(grown, SLACK))) return grown;
	const whole = added(measured(document, DOCUMENT), size);
	if (!within({
		...whole,
		depth: whole.depth + rise
	}, DOCUMENT)) throw tooLarge(DOCUMENT);
	return size;
}
/** Keep the growth of a patched document. */
function remember(document, size) {
	if (isObject(document)) growth.set(document, size);
}
/** The size of a value, added to `size`. Throws PatchTooLarge as soon as that is over `most`. */
function measured(value, most, size = {
	nodes: 0,
	characters: 0,
	depth: 0
}) {
	let depth = 0;
	for (let level = [value]; level.length > 0;) {
		const below = [];
		size.nodes += level.length;
		for (const each of level) size.characters += look(each, below);
		depth += below.length > 0 ? 1 : 0;
		if (!within({
			...size,
			depth
		}, most)) throw tooLarge(most);
		level = below;
	}
	size.depth = Math.max(size.depth, depth);
	return size;
}
/** The characters of one value; what it holds goes to `below`. */
function look(value, below) {
	if (typeof value === "string") return value.length;
	if (!isObject(value)) return 0;
	let characters = 0;
	for (const [name, item] of Object.entries(value)) {
		below.push(item);
		if (!Array.isArray(value)) characters += name.length;
	}
	return characters;
}
/** The sum of two sizes. */
function added(one, other) {
	if (one === void 0) return other;
	return {
		nodes: one.nodes + other.nodes,
		characters: one.characters + other.characters,
		depth: Math.max(one.depth, other.depth)
	};
}
function within(size, most) {
	return size.nodes <= most.nodes && size.characters <= most.characters && size.depth <= most.depth;
}
function tooLarge(most) {
	return new PatchTooLarge(`the patch would make more than ${most.nodes} values, ${most.characters} characters or ${most.depth} levels; send a snapshot instead`);
}
function isObject(value) {
	return value !== null && typeof value === "object";
}
// src/client/patch.ts
/** A document after a JSON Patch, or as it was when an operation does not fit. */
function patched(document, operations) {
	const { value } = attempt(document, operations);
	return value;
}
/** The same, and whether the patch applied; `error` is a PatchTooLarge where the result would be too large. */
function attempt(document, operations) {
	try {
		const grown = fits(document, operations);
		const copied = {
			nodes: 0,
			characters: 0,
			depth: 0
		};
		const value = operations.reduce((root, operation) => one(root, operation, copied), document);
		remember(value, added(grown, copied));
		return {
			value,
			applied: true,
			error: null
		};
	} catch (error) {
		return {
			value: document,
			applied: false,
			error
		};
	}
}
function one(root, { op, path, from, value }, copied) {
	switch (op) {
		case "test":
			if (!same(tokens(path).reduce(child, root), value)) throw new Error("the test failed");
			return root;
		case "move":
		case "copy": {
			const source = tokens(from ?? "");
			const moved = source.reduce(child, root);
			if (op === "copy") measured(moved, COPIES, copied);
			return at(op === "move" ? at(root, source, "remove", null) : root, tokens(path), "add", moved);
		}
		case "remove": return at(root, tokens(path), op, null);
		case "add":
		case "replace": return at(root, tokens(path), op, structuredClone(value));
		default: throw new Error("no such operation");
	}
}
/** The document with one place changed. */
function at(node, path, op, value) {
	const [token, ...rest] = path;
	if (token === void 0) return op === "remove" ? null : value;
	if (rest.length > 0) return put(node, token, at(child(node, token), rest, op, value));
	if (Array.isArray(node)) {
		const end = op === "add" ? node.length : node.length - 1;
		const index = token === "-" && op === "add" ? node.length : /^(0|[1-9]\d*)$/.test(token) ? Number(token) : -1;
		if (index < 0 || index > end) throw new Error("no such index");
		return op === "remove" ? node.toSpliced(index, 1) : node.toSpliced(index, op === "add" ? 0 : 1, value);
	}
	if (op !== "add") child(node, token);
	if (op !== "remove") return put(node, token, value);
	const { [token]: _, ...kept } = container(node);
	return kept;
}
function put(node, token, value) {
	const copy = Array.isArray(node) ? [...node] : { ...container(node) };
	Object.defineProperty(copy, token, {
		value,
		writable: true,
		enumerable: true,
		configurable: true
	});
	return copy;
}
function container(node) {
	if (node === null || typeof node !== "object") throw new Error("no container");
	return node;
}
function tokens(pointer) {
	return pointer.split("/").slice(1).map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
}
/** What stands under a name in a document itself: paths come from agents, and no prototype is part of a document. */
function child(node, token) {
	if (!Object.hasOwn(container(node), token)) throw new Error("nothing is there");
	return node[token];
}
/** Whether two JSON values are equal; the order of an object's keys does not matter. */
function same(one, other) {
	if (one === other) return true;
	if (one === null || other === null || typeof one !== "object" || typeof other !== "object") return false;
	if (Array.isArray(one) !== Array.isArray(other)) return false;
	const names = Object.keys(one);
	if (names.length !== Object.keys(other).length) return false;
	return names.every((name) => Object.hasOwn(other, name) && same(one[name], other[name]));
}
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
// src/client/view.ts
var NOTHING = Object.freeze({
	prompt: 0,
	completion: 0,
	total: 0
});
var NAMES = [
	"prompt",
	"completion",
	"total"
];
var KEPT = 2e3;
/** What a screen shows before anything came. */
function initial(thread) {
	return {
		thread,
		status: null,
		run: null,
		runs: Object.create(null),
		items: [],
		interrupts: [],
		state: null,
		lastPatch: null,
		usage: { ...NOTHING },
		envelopes: [],
		count: 0,
		missed: 0
	};
}
/** The view after one more envelope. The view given in is changed and returned: there is one owner. */
function apply(view, envelope) {
	view.count += 1;
	view.envelopes.push(envelope);
	if (view.envelopes.length > 2 * KEPT) view.envelopes.splice(0, view.envelopes.length - KEPT);
	(Object.hasOwn(HANDLERS, envelope.type) ? HANDLERS[envelope.type] : void 0)?.(view, envelope, envelope.payload);
	return view;
}
var HANDLERS = {
	"agent.status": status,
	"agent.step.started": stepStarted,
	"agent.step.completed": stepCompleted,
	"agent.subagent.started"(view, envelope, payload) {
		view.items.push({
			kind: "subagent",
			key: `sub ${payload.subagent_run_id} ${envelope.seq}`,
			run: envelope.execution_id,
			id: payload.subagent_run_id,
			name: payload.name,
			description: payload.description,
			lane: payload.parent_subagent_run_id ?? null,
			call: payload.parent_tool_call_id,
			state: "running",
			started: envelope.timestamp,
			seq: envelope.seq
		});
	},
	"agent.subagent.completed"(view, _, payload) {
		change(view, view.items.findLastIndex((item) => item.kind === "subagent" && item.id === payload.subagent_run_id), {
			ms: payload.duration_ms,
			error: payload.error,
			state: payload.success ? payload.suspended ? "interrupted" : "done" : "failed"
		});
	},
	"agent.tool.started"(view, envelope, payload) {
		view.items.push({
			kind: "tool",
			key: `tool ${payload.tool_call_id} ${envelope.seq}`,
			run: envelope.execution_id,
			id: payload.tool_call_id,
			name: payload.tool_name,
			summary: payload.args_summary,
			args: payload.args,
			lane: payload.subagent_run_id ?? null,
			step: stepOf(view, envelope, payload),
			state: "running",
			started: envelope.timestamp,
			seq: envelope.seq
		});
	},
	"agent.tool.completed"(view, envelope, payload) {
		let at = view.items.findLastIndex((item) => item.kind === "tool" && item.id === payload.tool_call_id);
		if (at < 0) {
			at = view.items.length;
			view.items.push({
				kind: "tool",
				key: `tool ${payload.tool_call_id} ${envelope.seq}`,
				run: envelope.execution_id,
				id: payload.tool_call_id,
				name: payload.tool_name,
				lane: payload.subagent_run_id ?? null,
				started: envelope.timestamp,
				seq: envelope.seq
			});
		}
		change(view, at, {
			ms: payload.duration_ms,
			result: payload.result_summary,
			error: payload.error,
			state: payload.success ? "done" : "failed"
		});
	},
	"agent.stream.chunk": (view, envelope, payload) => text(view, envelope, payload, "text"),
	"agent.reasoning.chunk": (view, envelope, payload) => text(view, envelope, payload, "reasoning"),
	"agent.interrupt"(view, envelope, payload) {
		view.interrupts = payload.interrupts;
		for (const asked of view.interrupts) view.items.push({
			kind: "interrupt",
			key: `ask ${asked.id} ${envelope.seq}`,
			run: envelope.execution_id,
			seq: envelope.seq,
			started: envelope.timestamp,
			...asked
		});
	},
	"agent.state"(view, _, payload) {
		if ("snapshot" in payload) view.state = payload.snapshot;
		else if (payload.delta) {
			view.lastPatch = payload.delta;
			view.state = patched(view.state, view.lastPatch);
		}
	},
	"agent.custom"(view, envelope, payload) {
		view.items.push({
			kind: "note",
			key: `note ${envelope.seq}`,
			run: envelope.execution_id,
			name: payload.name,
			value: payload.value,
			lane: payload.subagent_run_id ?? null,
			seq: envelope.seq
		});
	},
	"agent.gap"(view, _, payload) {
		view.missed += payload.to_seq - payload.from_seq + 1;
	}
};
/** Another row in the place of the one at `index`; nothing where there is none. */
function change(view, index, changes) {
	const item = view.items[index];
	if (item !== void 0) view.items[index] = {
		...item,
		...changes
	};
}
function changeAll(view, which, changes) {
	view.items.forEach((item, index) => which(item) && change(view, index, changes));
}
function status(view, envelope, payload) {
	const id = envelope.execution_id;
	const run = view.runs[id] ??= {
		id,
		status: "in_progress",
		started: envelope.timestamp,
		spent: { ...NOTHING }
	};
	run.status = payload.status;
	if (payload.attempt) run.attempt = payload.attempt;
	if (payload.status === "in_progress") {
		view.interrupts = [];
		cutShort(view, id);
		view.items.push({
			kind: "run",
			key: `run ${id}`,
			run: id,
			seq: envelope.seq,
			at: envelope.timestamp,
			attempt: payload.attempt
		});
	} else {
		run.ended = envelope.timestamp;
		run.error = payload.error_message;
		if (payload.usage) run.usage = payload.usage;
		count(view);
		if (payload.error_message) view.items.push({
			kind: "error",
			key: `error ${envelope.seq}`,
			run: id,
			text: payload.error_message,
			code: payload.error_code,
			seq: envelope.seq
		});
		changeAll(view, (item) => item.run === id && item.state === "running", { state: payload.status === "completed" ? "done" : payload.status });
	}
	view.status = run.status;
	view.run = id;
}
/** A step that starts again takes back what its broken attempt had emitted. */
function stepStarted(view, envelope, payload) {
	const lane = payload.subagent_run_id ?? null;
	const run = envelope.execution_id;
	if (payload.attempt > 1) {
		const at = view.items.findLastIndex((item) => item.kind === "step" && item.name === payload.step_name && item.lane === lane);
		const broken = view.items[at];
		if (broken) {
			change(view, at, { state: "retried" });
			changeAll(view, (item) => item.step === broken.number && item.run === run && item.kind !== "step", { superseded: true });
		}
	}
	view.items.push({
		kind: "step",
		key: `step ${envelope.seq}`,
		run,
		number: payload.step_number,
		name: payload.step_name,
		attempt: payload.attempt,
		lane,
		tools: payload.available_tools,
		started: envelope.timestamp,
		state: "running",
		seq: envelope.seq
	});
}
function stepCompleted(view, envelope, payload) {
	const id = envelope.execution_id;
	const at = view.items.findLastIndex((item) => item.kind === "step" && item.number === payload.step_number && item.run === id);
	change(view, at, {
		ms: payload.duration_ms,
		errors: payload.errors,
		usage: payload.usage,
		reason: payload.finish_reason,
		state: payload.errors ? "failed" : "done"
	});
	const step = view.items[at];
	if (step && step.attempt > 1 && !payload.errors) keepLast(view, at);
	const run = view.runs[id];
	if (run && payload.usage) for (const name of NAMES) run.spent[name] += payload.usage[name] ?? 0;
	count(view);
}
/** A framework may report a retry only when it has worked: then the newest of the struck-out rows is the retry's. */
function keepLast(view, at) {
	const step = view.items[at];
	const own = (item) => item.step === step?.number && item.run === step?.run;
	if (view.items.slice(at + 1).some(own)) return;
	change(view, view.items.slice(0, at).findLastIndex((item) => item.superseded === true && own(item)), { superseded: false });
}
/** Tokens of all runs: as a run reports at its end, until then as its steps did. */
function count(view) {
	view.usage = { ...NOTHING };
	for (const run of Object.values(view.runs)) for (const name of NAMES) view.usage[name] += (run.usage ?? run.spent)[name] ?? 0;
}
/** A run without an end died with its process: what it had begun and not finished does not count. */
function cutShort(view, next) {
	for (const run of Object.values(view.runs)) {
		if (run.id === next || run.ended || run.status !== "in_progress") continue;
		run.status = "cut short";
		view.items.forEach((item, index) => {
			if (item.run !== run.id) return;
			if (item.state === "running") change(view, index, { state: "cut short" });
			if (item.complete === false) change(view, index, {
				complete: true,
				superseded: true
			});
		});
	}
}
function text(view, envelope, payload, kind) {
	if (payload.replace && payload.chunk === "") {
		changeAll(view, (item) => item.kind === kind && item.id === payload.message_id, {
			complete: true,
			superseded: true
		});
		return;
	}
	const at = view.items.findLastIndex((item) => item.kind === kind && item.id === payload.message_id && !item.superseded);
	const item = view.items[at];
	const more = {
		text: item && !payload.replace ? item.text + payload.chunk : payload.chunk,
		complete: payload.is_complete
	};
	if (item) change(view, at, more);
	else view.items.push({
		kind,
		key: `${kind} ${payload.message_id} ${envelope.seq}`,
		run: envelope.execution_id,
		id: payload.message_id,
		role: payload.role ?? "assistant",
		lane: payload.subagent_run_id ?? null,
		step: payload.step_number ?? null,
		...more
	});
}
function stepOf(view, envelope, payload) {
	const lane = payload.subagent_run_id ?? null;
	const steps = view.items.filter((item) => item.kind === "step" && item.state === "running" && item.lane === lane && item.run === envelope.execution_id);
	return steps.length === 1 ? steps[0]?.number : null;
}
// src/client/watch.ts
var PAGE = 1e3;
var REFUSED = [4001, 4009];
/** Watch a thread until the returned function is called. */
function watch(options) {
	const watcher = new Watcher(options);
	watcher.start();
	return () => watcher.close();
}
var Watcher = class {
	options;
	reader;
	view;
	socket = null;
	pause = 200;
	stopped = false;
	fetching = false;
	held = [];
	again = false;
	timer;
	painting = false;
	link = {
		state: "connecting",
		behind: 0,
		last: 0,
		epoch: null
	};
	root;
	path;
	constructor(options) {
		this.options = options;
		const { base = "/", thread, after } = options;
		this.reader = new Reader(after === void 0 ? {} : { last: after });
		this.view = initial(thread);
		this.root = new URL(base, globalThis.location?.href ?? "http://localhost/");
		if (!this.root.pathname.endsWith("/")) this.root.pathname += "/";
		this.path = `threads/${encodeURIComponent(thread)}`;
	}
	start() {
		this.catchUp();
		this.open();
	}
	close() {
		if (this.stopped) return;
		this.stopped = true;
		clearTimeout(this.timer);
		this.socket?.close();
		this.options.onChange(this.view, this.link);
	}
	changed() {
		if (this.painting || this.stopped) return;
		this.painting = true;
		const paint = () => {
			this.painting = false;
			this.link.last = this.reader.last ?? 0;
			this.link.epoch = this.reader.epoch;
			if (!this.stopped) this.options.onChange(this.view, this.link);
		};
		if ("requestAnimationFrame" in globalThis && !globalThis.document?.hidden) requestAnimationFrame(paint);
		else setTimeout(paint, 30);
	}
	async ask(path, given) {
		const { headers, token, credentials } = this.options;
		const url = new URL(path, this.root);
		const own = typeof headers === "function" ? await headers() : headers;
		if (!headers && token && !given) url.searchParams.set("token", await this.ticket() ?? "");
		const request = {
			...given,
			headers: {
				...own,
				...given?.headers
			},
			cache: "no-store"
		};
		const response = await fetch(url, credentials ? {
			...request,
			credentials
		} : request);
		if (!response.ok) throw new Answered(response.status);
		return await response.json();
	}
	/** What opens a socket that cannot send headers; null where cookies will do. */
	async ticket() {
		const { token, headers, thread } = this.options;
		if (token) return typeof token === "function" ? token() : token;
		if (!headers) return null;
		const body = JSON.stringify({ thread_id: thread });
		return (await this.ask("broadcasting/token", {
			method: "POST",
			headers: { "Content-Type": "application/json" },
			body
		})).token;
	}
	/** Everything after `last`, page by page, from the log. */
	async fetchRest() {
		for (;;) {
			const after = this.reader.last ?? 0;
			const epoch = this.reader.epoch === null ? "" : `&epoch=${encodeURIComponent(this.reader.epoch)}`;
			const page = await this.ask(`${this.path}/envelopes?after=${after}${epoch}&limit=${PAGE}`);
			if (page.recovered === false) {
				this.startOver(page.epoch);
				if (page.head === 0) return;
				continue;
			}
			for (const envelope of page.envelopes) if (this.reader.take(envelope, { fetched: true }) === "apply") apply(this.view, envelope);
			if (!page.more) {
				this.reader.epoch ??= page.epoch;
				this.reader.last ??= 0;
				return;
			}
			this.changed();
		}
	}
	startOver(epoch) {
		this.view = initial(this.options.thread);
		this.reader = new Reader({
			last: 0,
			epoch
		});
	}
	catchUp() {
		if (this.fetching) return;
		this.fetching = true;
		this.link.state = "recovering";
		this.changed();
		this.fetchRest().then(() => this.caughtUp(), (error) => {
			this.fetching = false;
			this.link.error = refused(error) ? "refused" : "unreachable";
			if (this.link.error === "refused") return this.close();
			this.changed();
			setTimeout(() => this.stopped || this.catchUp(), 1e3);
		});
	}
	caughtUp() {
		this.fetching = false;
		this.link.error = null;
		this.link.behind = 0;
		this.link.state = this.socket?.readyState === 1 ? "live" : "connecting";
		const waiting = this.held;
		this.held = [];
		for (const envelope of waiting) this.take(envelope);
		if (this.again) {
			this.again = false;
			this.catchUp();
		}
		this.changed();
	}
	take(envelope) {
		if (this.fetching) {
			this.link.behind = this.held.push(envelope);
			return;
		}
		switch (this.reader.take(envelope)) {
			case "apply":
				apply(this.view, envelope);
				this.link.behind = 0;
				this.changed();
				break;
			case "restart":
				this.startOver(envelope.epoch);
				this.held.push(envelope);
				this.catchUp();
				break;
			case "fetch":
				this.held.push(envelope);
				this.catchUp();
		}
	}
	comeBack() {
		this.timer = setTimeout(() => void this.open(), this.pause * (.5 + Math.random() / 2));
		this.pause = Math.min(this.pause * 2, 3e3);
	}
	async open() {
		let ticket;
		try {
			ticket = await this.ticket();
		} catch (error) {
			if (this.stopped) return;
			this.link.error = refused(error) ? "refused" : "unreachable";
			return this.link.error === "refused" ? this.close() : this.comeBack();
		}
		if (this.stopped) return;
		const url = new URL("ws", this.root);
		url.protocol = url.protocol.replace("http", "ws");
		url.searchParams.set("session", this.options.thread);
		if (this.reader.last !== null) url.searchParams.set("after", String(this.reader.last));
		if (this.reader.epoch !== null) url.searchParams.set("epoch", this.reader.epoch);
		if (ticket) url.searchParams.set("token", ticket);
		const socket = new WebSocket(url);
		this.socket = socket;
		socket.onmessage = ({ data }) => this.received(socket, JSON.parse(data));
		socket.onclose = ({ code }) => {
			if (this.stopped) return;
			this.link.state = "connecting";
			this.changed();
			if (!REFUSED.includes(code)) return this.comeBack();
			this.link.error = "refused";
			this.close();
		};
	}
	received(socket, message) {
		if (message.type === "ping") socket.send("{\"type\":\"pong\"}");
		else if (message.type !== "hub.subscribed") {
			if (message.seq) this.take(message);
		} else {
			this.pause = 200;
			if (message.recovered) {
				this.link.state = "live";
				this.changed();
			} else {
				this.again = this.fetching;
				this.catchUp();
			}
		}
	}
};
/** An answer that is an error. */
var Answered = class extends Error {
	status;
	constructor(status) {
		super(`the server answered ${status}`);
		this.status = status;
	}
};
var refused = (error) => error instanceof Answered && (error.status === 401 || error.status === 403);
export { PatchTooLarge, Reader, apply, attempt, authorizer, channelFor, initial, patched, watch };
