// runcast in a browser: a client that loses nothing, and a reducer from envelopes to what a screen shows.
//
//   import { watch } from "./runcast.js";
//   const stop = watch({ base: "/", thread: "thread-7", onChange: (view) => render(view) });
//
// `watch` opens a plain WebSocket, comes back with its position after every loss, and fetches what the line
// swallowed. `apply` is pure: the same envelopes give the same view. No dependency, no build step.

import { Reader } from "./reader.js";

export { Reader };

const NOTHING = Object.freeze({ prompt: 0, completion: 0, total: 0 });
const KEPT = 2000; // envelopes kept for the raw log

/** What a screen shows before anything came. */
export function initial(thread) {
  return {
    thread,
    status: null,
    run: null,
    runs: Object.create(null), // no run's id is a name of Object.prototype; run id -> { id, status, started, ended, attempt, usage, error }
    items: [], // the timeline: steps, texts, tools, subagents, questions, notes, in order of appearance
    interrupts: [],
    state: null,
    lastPatch: null,
    usage: { ...NOTHING },
    envelopes: [],
    count: 0,
    missed: 0, // envelopes a gap said would not come
    custom: [],
  };
}

/** The view after one more envelope. The view given in is changed and returned: there is one owner. */
export function apply(view, envelope) {
  view.count += 1;
  view.envelopes.push(envelope);
  if (view.envelopes.length > KEPT) view.envelopes.splice(0, view.envelopes.length - KEPT);
  const handler = Object.hasOwn(HANDLERS, envelope.type) ? HANDLERS[envelope.type] : null;
  if (handler) handler(view, envelope, envelope.payload);
  return view;
}

const HANDLERS = {
  "agent.status"(view, envelope, payload) {
    const run = (view.runs[envelope.execution_id] ??= { id: envelope.execution_id, started: envelope.timestamp, spent: { ...NOTHING } });
    run.status = payload.status;
    if (payload.attempt) run.attempt = payload.attempt;
    if (payload.status === "in_progress") {
      view.interrupts = [];
      cutShort(view, envelope.execution_id);
      view.items.push({ kind: "run", key: `run ${envelope.execution_id}`, run: envelope.execution_id, seq: envelope.seq, at: envelope.timestamp, attempt: payload.attempt });
    } else {
      run.ended = envelope.timestamp;
      run.error = payload.error_message;
      if (payload.usage) run.usage = payload.usage;
      count(view);
      if (payload.error_message) view.items.push({ kind: "error", key: `error ${envelope.seq}`, text: payload.error_message, code: payload.error_code });
      for (const item of view.items) if (item.run === envelope.execution_id && item.state === "running") item.state = payload.status === "completed" ? "done" : payload.status;
    }
    view.status = payload.status;
    view.run = envelope.execution_id;
  },
  "agent.step.started"(view, envelope, payload) {
    // A step that starts again takes back what its broken attempt had said.
    if (payload.attempt > 1) {
      const lane = payload.subagent_run_id ?? null;
      const broken = view.items.findLast((item) => item.kind === "step" && item.name === payload.step_name && item.lane === lane);
      if (broken) {
        broken.state = "retried";
        for (const item of view.items) if (item.step === broken.number && item.run === envelope.execution_id && item.kind !== "step") item.superseded = true;
      }
    }
    view.items.push({ kind: "step", key: `step ${envelope.seq}`, run: envelope.execution_id, number: payload.step_number, name: payload.step_name, attempt: payload.attempt, lane: payload.subagent_run_id ?? null, tools: payload.available_tools, started: envelope.timestamp, state: "running" });
  },
  "agent.step.completed"(view, envelope, payload) {
    const step = view.items.findLast((item) => item.kind === "step" && item.number === payload.step_number && item.run === envelope.execution_id);
    if (step) Object.assign(step, { ms: payload.duration_ms, errors: payload.errors, usage: payload.usage, reason: payload.finish_reason, state: payload.errors ? "failed" : "done" });
    if (step?.attempt > 1 && !payload.errors) keepLast(view, step);
    const run = view.runs[envelope.execution_id];
    if (run && payload.usage) for (const name of Object.keys(NOTHING)) run.spent[name] += payload.usage[name] ?? 0;
    count(view);
  },
  "agent.subagent.started"(view, envelope, payload) {
    view.items.push({ kind: "subagent", key: `sub ${payload.subagent_run_id} ${envelope.seq}`, run: envelope.execution_id, id: payload.subagent_run_id, name: payload.name, lane: payload.parent_subagent_run_id ?? null, call: payload.parent_tool_call_id, state: "running" });
  },
  "agent.subagent.completed"(view, envelope, payload) {
    const agent = view.items.findLast((item) => item.kind === "subagent" && item.id === payload.subagent_run_id);
    if (agent) Object.assign(agent, { ms: payload.duration_ms, error: payload.error, state: payload.success ? (payload.suspended ? "interrupted" : "done") : "failed" });
  },
  "agent.tool.started"(view, envelope, payload) {
    view.items.push({ kind: "tool", key: `tool ${payload.tool_call_id} ${envelope.seq}`, run: envelope.execution_id, id: payload.tool_call_id, name: payload.tool_name, summary: payload.args_summary, args: payload.args, lane: payload.subagent_run_id ?? null, step: stepOf(view, envelope, payload), state: "running" });
  },
  "agent.tool.completed"(view, envelope, payload) {
    let tool = view.items.findLast((item) => item.kind === "tool" && item.id === payload.tool_call_id);
    if (!tool) {
      tool = { kind: "tool", key: `tool ${payload.tool_call_id} ${envelope.seq}`, run: envelope.execution_id, id: payload.tool_call_id, name: payload.tool_name, lane: payload.subagent_run_id ?? null };
      view.items.push(tool);
    }
    Object.assign(tool, { ms: payload.duration_ms, result: payload.result_summary, error: payload.error, state: payload.success ? "done" : "failed" });
  },
  "agent.stream.chunk": (view, envelope, payload) => text(view, envelope, payload, "text"),
  "agent.reasoning.chunk": (view, envelope, payload) => text(view, envelope, payload, "reasoning"),
  "agent.interrupt"(view, envelope, payload) {
    view.interrupts = payload.interrupts;
    for (const asked of payload.interrupts) view.items.push({ kind: "interrupt", key: `ask ${asked.id} ${envelope.seq}`, run: envelope.execution_id, ...asked });
  },
  "agent.state"(view, envelope, payload) {
    if ("snapshot" in payload) view.state = payload.snapshot;
    else if (payload.delta) {
      view.lastPatch = payload.delta;
      view.state = patched(view.state, payload.delta);
    }
  },
  "agent.custom"(view, envelope, payload) {
    view.items.push({ kind: "note", key: `note ${envelope.seq}`, run: envelope.execution_id, name: payload.name, value: payload.value, lane: payload.subagent_run_id ?? null });
  },
  "agent.gap"(view, envelope, payload) {
    view.missed += payload.to_seq - payload.from_seq + 1;
  },
};

/** A framework may tell of a retry only when it has worked: then what was said last was the retry's. */
function keepLast(view, step) {
  const at = view.items.indexOf(step);
  if (view.items.slice(at + 1).some((item) => item.step === step.number && item.run === step.run)) return;
  const last = view.items.slice(0, at).findLast((item) => item.superseded && item.step === step.number && item.run === step.run);
  if (last) last.superseded = false;
}

/** Tokens of all runs: as a run told at its end, until then as its steps did. */
function count(view) {
  view.usage = { ...NOTHING };
  for (const run of Object.values(view.runs)) for (const name of Object.keys(NOTHING)) view.usage[name] += (run.usage ?? run.spent)[name] ?? 0;
}

/** A run that never told its end died with its process: what it had begun and not finished does not count. */
function cutShort(view, next) {
  for (const run of Object.values(view.runs)) {
    if (run.id === next || run.ended || run.status !== "in_progress") continue;
    run.status = "cut short";
    for (const item of view.items) {
      if (item.run !== run.id) continue;
      if (item.state === "running") item.state = "cut short";
      if ("complete" in item && !item.complete) Object.assign(item, { complete: true, superseded: true });
    }
  }
}

function text(view, envelope, payload, kind) {
  // Replaced by nothing is taken back: its words stay on the page, struck out, as what an attempt had said.
  if (payload.replace && payload.chunk === "") {
    const said = view.items.filter((each) => each.kind === kind && each.id === payload.message_id);
    for (const item of said) Object.assign(item, { complete: true, superseded: true });
    return;
  }
  let item = view.items.findLast((each) => each.kind === kind && each.id === payload.message_id && !each.superseded);
  if (!item) {
    item = { kind, key: `${kind} ${payload.message_id} ${envelope.seq}`, run: envelope.execution_id, id: payload.message_id, role: payload.role ?? "assistant", text: "", lane: payload.subagent_run_id ?? null, step: payload.step_number ?? null };
    view.items.push(item);
  }
  item.text = payload.replace ? payload.chunk : item.text + payload.chunk;
  item.complete = payload.is_complete;
}

function stepOf(view, envelope, payload) {
  const lane = payload.subagent_run_id ?? null;
  const steps = view.items.filter((item) => item.kind === "step" && item.state === "running" && item.lane === lane && item.run === envelope.execution_id);
  return steps.length === 1 ? steps[0].number : null;
}

/** A document after a JSON Patch, or as it was when an operation does not fit. */
export function patched(document, operations) {
  let root = structuredClone(document);
  try {
    for (const operation of operations) root = patchOne(root, operation);
    return root;
  } catch {
    return document;
  }
}

function patchOne(root, { op, path, from, value }) {
  const at = (pointer) => pointer.split("/").slice(1).map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  const read = (pointer) => at(pointer).reduce(child, root);
  if (op === "move" || op === "copy") {
    value = structuredClone(read(from));
    if (op === "move") root = patchOne(root, { op: "remove", path: from });
    op = "add";
  }
  const tokens = at(path);
  if (tokens.length === 0) return op === "remove" ? null : value;
  const last = tokens.pop();
  const parent = tokens.reduce(child, root);
  if (op === "test") return root;
  if (Array.isArray(parent)) {
    const index = last === "-" ? parent.length : Number(last);
    if (!Number.isInteger(index)) throw new Error("no index");
    if (op === "add") parent.splice(index, 0, value);
    else if (op === "remove") parent.splice(index, 1);
    else parent[index] = value;
  } else if (op === "remove") delete parent[last];
  else Object.defineProperty(parent, last, { value, writable: true, enumerable: true, configurable: true }); // also "__proto__"
  return root;
}

/** What stands under a name in a document itself: paths come from agents, and prototypes are nobody's document. */
function child(node, token) {
  if (!Object.hasOwn(node, token)) throw new Error("nothing is there");
  return node[token];
}

/**
 * Watch a thread until the returned function is called.
 *
 *   base         where runcast is mounted ("/" or "https://host/agents/")
 *   thread       the thread's id
 *   headers      for the HTTP requests (Authorization, …), or a function that gives them, each time anew. A browser's
 *                WebSocket sends none, so each socket is opened with a token that was fetched with them
 *   token        instead of headers: a token that your own server fetched, or a function that gives a fresh one
 *   credentials  as in fetch: "include" sends cookies to another origin
 *   onChange     (view, link) => void; link is { state: "live" | "recovering" | "connecting", behind, last }
 */
export function watch({ base = "/", thread, token, headers, credentials, onChange }) {
  let reader = new Reader();
  let view = initial(thread);
  let socket = null;
  let pause = 200;
  let stopped = false;
  let busy = null; // the fetch under way
  let held = []; // what came meanwhile
  let again = false; // the line was joined while a fetch was under way: what fell between the two is fetched once more
  let timer = null;
  const link = { state: "connecting", behind: 0, last: 0, epoch: null };
  const root = new URL(base, globalThis.location?.href ?? "http://localhost/");
  if (!root.pathname.endsWith("/")) root.pathname += "/";
  const path = `threads/${encodeURIComponent(thread)}`;

  let painting = false;
  const changed = () => {
    if (painting || stopped) return;
    painting = true;
    const paint = () => {
      painting = false;
      link.last = reader.last ?? 0;
      if (!stopped) onChange(view, link);
    };
    globalThis.requestAnimationFrame && !globalThis.document?.hidden ? requestAnimationFrame(paint) : setTimeout(paint, 30);
  };

  const ask = async (path, given) => {
    const url = new URL(path, root);
    const own = typeof headers === "function" ? await headers() : headers;
    // Who has headers needs no token here; who has a token alone is let in by it.
    if (!headers && token && !given) url.searchParams.set("token", await proof());
    const response = await fetch(url, { ...given, headers: { ...own, ...given?.headers }, credentials, cache: "no-store" });
    if (!response.ok) throw Object.assign(new Error(`${response.status}`), { status: response.status });
    return response.json();
  };
  const get = (url) => ask(url);

  /** What lets a socket in that cannot send headers; nothing where cookies will do. */
  const proof = async () => {
    if (token) return typeof token === "function" ? token() : token;
    if (!headers) return null;
    const body = JSON.stringify({ thread_id: thread });
    return (await ask("broadcasting/token", { method: "POST", headers: { "Content-Type": "application/json" }, body })).token;
  };

  /** Everything after `last`, page by page, from the log. */
  const fetchRest = async () => {
    for (;;) {
      const after = reader.last ?? 0;
      const epoch = reader.epoch === null ? "" : `&epoch=${encodeURIComponent(reader.epoch)}`;
      const page = await get(`${path}/envelopes?after=${after}${epoch}`);
      if (page.recovered === false) {
        view = initial(thread);
        reader = new Reader({ last: 0, epoch: page.epoch });
        if (page.head === 0) return;
        continue;
      }
      for (const envelope of page.envelopes) if (reader.take(envelope, { fetched: true }) === "apply") apply(view, envelope);
      // What was read tells of nothing to show up to `head`: stand there.
      if (!page.more) {
        if (reader.epoch === null) reader.epoch = page.epoch;
        if (reader.last === null) reader.last = 0;
        return;
      }
      changed();
    }
  };

  const catchUp = () => {
    busy ??= (async () => {
      link.state = "recovering";
      changed();
      try {
        await fetchRest();
      } catch (error) {
        link.error = refused(error) ? "refused" : "unreachable";
        busy = null;
        if (link.error === "refused") return close();
        setTimeout(() => stopped || catchUp(), 1000);
        return;
      }
      busy = null;
      link.error = null;
      link.state = socket?.readyState === 1 ? "live" : "connecting";
      const waiting = held;
      held = [];
      for (const envelope of waiting) take(envelope);
      if (again) {
        again = false;
        catchUp();
      }
      changed();
    })();
  };

  const take = (envelope) => {
    if (busy) {
      held.push(envelope);
      link.behind = held.length;
      return;
    }
    switch (reader.take(envelope)) {
      case "apply":
        apply(view, envelope);
        link.behind = 0;
        changed();
        break;
      case "restart":
        view = initial(thread);
        reader = new Reader({ last: 0, epoch: envelope.epoch });
        held.push(envelope);
        catchUp();
        break;
      case "fetch":
        held.push(envelope);
        catchUp();
        break;
    }
  };

  const comeBack = () => {
    timer = setTimeout(open, pause * (0.5 + Math.random() / 2));
    pause = Math.min(pause * 2, 3000);
  };

  const open = async () => {
    let ticket;
    try {
      ticket = await proof();
    } catch (error) {
      if (stopped) return;
      link.error = refused(error) ? "refused" : "unreachable";
      return link.error === "refused" ? close() : comeBack();
    }
    if (stopped) return;
    const url = new URL("ws", root);
    url.protocol = url.protocol.replace("http", "ws");
    url.searchParams.set("session", thread);
    if (reader.last !== null) url.searchParams.set("after", reader.last);
    if (reader.epoch !== null) url.searchParams.set("epoch", reader.epoch);
    if (ticket) url.searchParams.set("token", ticket);
    socket = new WebSocket(url);
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.type === "hub.subscribed") {
        pause = 200;
        // Recovered: what was missed follows on this socket. Else the log has it.
        if (message.recovered) {
          link.state = "live";
          changed();
        } else {
          again = busy !== null;
          catchUp();
        }
      } else if (message.type === "ping") socket.send('{"type":"pong"}');
      else if (message.seq) take(message);
    };
    socket.onclose = ({ code }) => {
      if (stopped) return;
      link.state = "connecting";
      changed();
      if (code === 4009 || code === 4001) {
        link.error = "refused";
        return close();
      }
      comeBack();
    };
  };

  const close = () => {
    if (stopped) return;
    stopped = true;
    clearTimeout(timer);
    socket?.close();
    onChange(view, link);
  };

  catchUp();
  open();
  return close;
}

const refused = ({ status }) => status === 401 || status === 403;

/** The channel of a thread, as the hub names it. */
export function channelFor(thread) {
  const plain = `agent.${thread}`;
  if (/^[-a-zA-Z0-9_=@,.;]{1,192}$/.test(plain) && !thread.startsWith("=b.") && !thread.startsWith("=h.")) return plain;
  const bytes = new TextEncoder().encode(thread);
  const code = btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return `agent.=b.${code}`;
}

/**
 * For Laravel Echo or pusher-js: an authorizer that sends the position along, so that the hub replays what was missed.
 *
 *   const positions = new Map();            // channel name -> Reader
 *   new Pusher(key, { …, channelAuthorization: { customHandler: authorizer({ endpoint, positions }) } });
 */
export function authorizer({ endpoint = "/broadcasting/auth", headers = {}, positions = new Map() }) {
  return async ({ socketId, channelName }, callback) => {
    const form = new URLSearchParams({ socket_id: socketId, channel_name: channelName });
    const reader = positions.get(channelName);
    if (reader?.epoch != null) {
      form.set("epoch", reader.epoch);
      form.set("offset", String(reader.last ?? 0));
    }
    try {
      const own = typeof headers === "function" ? await headers() : headers;
      const response = await fetch(endpoint, { method: "POST", headers: own, body: form });
      if (!response.ok) throw new Error(`the auth endpoint answered ${response.status}`);
      callback(null, await response.json());
    } catch (error) {
      callback(error, null);
    }
  };
}
