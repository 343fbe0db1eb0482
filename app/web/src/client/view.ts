// From envelopes to what a screen shows. `apply` is pure but for its view: the same envelopes give the same view.
//
// A row of the timeline is never changed in place: a row that changed is another object, so that a screen knows by
// identity which rows to draw again.
import { patched } from "./patch.js";
import type { Envelope, Interrupt, Item, ItemState, Operation, Queued, Run, Status, Usage, View } from "./types.js";

const NOTHING: Usage = Object.freeze({ prompt: 0, completion: 0, total: 0 });
const NAMES = ["prompt", "completion", "total"] as const;
const KEPT = 2000; // envelopes kept for the raw log

// An envelope's payload; its fields depend on the type, and the server has checked them.
type Payload = any;
type Handler = (view: View, envelope: Envelope, payload: Payload) => void;

/** What a screen shows before anything came. */
export function initial(thread: string): View {
  return {
    thread,
    annotations: {},
    status: null,
    run: null,
    runs: Object.create(null) as Record<string, Run>, // a run's id is no name of Object.prototype
    items: [],
    interrupts: [],
    queued: [],
    state: null,
    lastPatch: null,
    usage: { ...NOTHING },
    envelopes: [],
    count: 0,
    missed: 0,
  };
}

/** The view after one more envelope. The view given in is changed and returned: there is one owner. */
export function apply(view: View, envelope: Envelope): View {
  view.count += 1;
  view.envelopes.push(envelope);
  if (view.envelopes.length > 2 * KEPT) view.envelopes.splice(0, view.envelopes.length - KEPT);
  const handler = Object.hasOwn(HANDLERS, envelope.type) ? HANDLERS[envelope.type] : undefined;
  handler?.(view, envelope, envelope.payload);
  return view;
}

const HANDLERS: Record<string, Handler> = {
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
      seq: envelope.seq,
    });
  },
  "agent.subagent.completed"(view, _, payload) {
    const at = view.items.findLastIndex((item) => item.kind === "subagent" && item.id === payload.subagent_run_id);
    change(view, at, {
      ms: payload.duration_ms,
      error: payload.error,
      state: payload.success ? (payload.suspended ? "interrupted" : "done") : "failed",
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
      seq: envelope.seq,
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
        seq: envelope.seq,
      });
    }
    change(view, at, {
      ms: payload.duration_ms,
      result: payload.result_summary,
      error: payload.error,
      state: payload.success ? "done" : "failed",
    });
  },
  "agent.stream.chunk": (view, envelope, payload) => text(view, envelope, payload, "text"),
  "agent.reasoning.chunk": (view, envelope, payload) => text(view, envelope, payload, "reasoning"),
  "agent.interrupt"(view, envelope, payload) {
    view.interrupts = payload.interrupts as Interrupt[];
    for (const asked of view.interrupts)
      view.items.push({
        kind: "interrupt",
        key: `ask ${asked.id} ${envelope.seq}`,
        run: envelope.execution_id,
        seq: envelope.seq,
        started: envelope.timestamp,
        ...asked,
      });
  },
  "agent.state"(view, _, payload) {
    if ("snapshot" in payload) view.state = payload.snapshot;
    else if (payload.delta) {
      view.lastPatch = payload.delta as Operation[];
      view.state = patched(view.state, view.lastPatch);
    }
  },
  "agent.activity": activity,
  "agent.annotation"(view, _, payload) {
    const { [payload.id]: _former, ...others } = view.annotations;
    view.annotations = payload.payload === null ? others : { ...others, [payload.id]: payload };
  },
  "agent.custom"(view, envelope, payload) {
    view.items.push({
      kind: "note",
      key: `note ${envelope.seq}`,
      run: envelope.execution_id,
      name: payload.name,
      value: payload.value,
      lane: payload.subagent_run_id ?? null,
      seq: envelope.seq,
    });
  },
  "agent.queued"(view, _, payload) {
    view.queued = payload.messages as Queued[];
  },
  "agent.steered"(view, envelope, payload) {
    waitsNoMore(view, payload.run_id);
    if (view.items.some((item) => item.kind === "text" && item.id === payload.message_id)) return;
    text(view, envelope, { ...payload, role: "user", chunk: payload.text, is_complete: true, steered: true }, "text");
  },
  "agent.gap"(view, _, payload) {
    view.missed += payload.to_seq - payload.from_seq + 1;
  },
};

/** An activity is drawn from the whole of it. One that came by reference is fetched, at every later change again. */
function activity(view: View, envelope: Envelope, payload: Payload): void {
  const id = payload.message_id;
  let at = view.items.findLastIndex((item) => item.kind === "activity" && item.id === id);
  const known = view.items[at];
  if (known === undefined) {
    if (payload.patch) return; // of an activity that was never shown
    at = view.items.length;
    const key = `activity ${id} ${envelope.seq}`;
    view.items.push({ kind: "activity", key, id, lane: payload.subagent_run_id ?? null, seq: envelope.seq });
  }
  const now = { run: envelope.execution_id, name: payload.activity_type };
  if (payload.by_reference || (payload.patch && known?.["referred"]))
    change(view, at, { ...now, referred: true, wanted: envelope.seq });
  else if (payload.patch) change(view, at, { ...now, content: patched(known?.["content"], payload.patch) });
  else if (known === undefined || payload.replace !== false)
    change(view, at, { ...now, content: payload.content, referred: false, wanted: null });
}

/** The newest activity whose content has to be fetched: `threads/{thread}/messages/{id}?run={run}`. */
export function referred(view: View): Item | undefined {
  return view.items.findLast((item) => item.kind === "activity" && typeof item["wanted"] === "number");
}

/** Put what was fetched for an activity in its place; null where the server has none. It may be wanted anew meanwhile. */
export function resolved(view: View, asked: Item, message: { content: unknown } | null): void {
  const at = view.items.findIndex((item) => item.key === asked.key);
  const now = view.items[at]?.["wanted"];
  if (now === null || now === undefined) return; // a newer one came whole
  change(view, at, { content: message?.content, wanted: now === asked["wanted"] ? null : now });
}

/** Another row in the place of the one at `index`; nothing where there is none. */
function change(view: View, index: number, changes: Partial<Item>): void {
  const item = view.items[index];
  if (item !== undefined) view.items[index] = { ...item, ...changes };
}

function changeAll(view: View, which: (item: Item) => boolean, changes: Partial<Item>): void {
  view.items.forEach((item, index) => which(item) && change(view, index, changes));
}

function waitsNoMore(view: View, run: string): void {
  if (view.queued.some((each) => each.run_id === run)) view.queued = view.queued.filter((each) => each.run_id !== run);
}

function status(view: View, envelope: Envelope, payload: Payload): void {
  const id = envelope.execution_id;
  const run = (view.runs[id] ??= { id, status: "in_progress", started: envelope.timestamp, spent: { ...NOTHING } });
  run.status = payload.status as Status;
  if (payload.attempt) run.attempt = payload.attempt;
  if (payload.status === "in_progress") {
    view.interrupts = [];
    waitsNoMore(view, id);
    cutShort(view, id);
    view.items.push({
      kind: "run",
      key: `run ${id}`,
      run: id,
      seq: envelope.seq,
      at: envelope.timestamp,
      attempt: payload.attempt,
    });
  } else {
    run.ended = envelope.timestamp;
    run.error = payload.error_message;
    if (payload.usage) run.usage = payload.usage;
    count(view);
    if (payload.error_message)
      view.items.push({
        kind: "error",
        key: `error ${envelope.seq}`,
        run: id,
        text: payload.error_message,
        code: payload.error_code,
        seq: envelope.seq,
      });
    const state: ItemState = payload.status === "completed" ? "done" : payload.status;
    changeAll(view, (item) => item.run === id && item.state === "running", { state });
  }
  view.status = run.status;
  view.run = id;
}

/** A step that starts again takes back what its broken attempt had emitted. */
function stepStarted(view: View, envelope: Envelope, payload: Payload): void {
  const lane: string | null = payload.subagent_run_id ?? null;
  const run = envelope.execution_id;
  if (payload.attempt > 1) {
    const at = view.items.findLastIndex(
      (item) => item.kind === "step" && item.name === payload.step_name && item.lane === lane,
    );
    const broken = view.items[at];
    if (broken) {
      change(view, at, { state: "retried" });
      changeAll(view, (item) => item.step === broken.number && item.run === run && item.kind !== "step", {
        superseded: true,
      });
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
    seq: envelope.seq,
  });
}

function stepCompleted(view: View, envelope: Envelope, payload: Payload): void {
  const id = envelope.execution_id;
  const at = view.items.findLastIndex(
    (item) => item.kind === "step" && item.number === payload.step_number && item.run === id,
  );
  change(view, at, {
    ms: payload.duration_ms,
    errors: payload.errors,
    usage: payload.usage,
    reason: payload.finish_reason,
    state: payload.errors ? "failed" : "done",
  });
  const step = view.items[at];
  if (step && (step.attempt as number) > 1 && !payload.errors) keepLast(view, at);
  const run = view.runs[id];
  if (run && payload.usage) for (const name of NAMES) run.spent[name] += payload.usage[name] ?? 0;
  count(view);
}

/** A framework may report a retry only when it has worked: then the newest of the struck-out rows is the retry's. */
function keepLast(view: View, at: number): void {
  const step = view.items[at];
  const own = (item: Item): boolean => item.step === step?.number && item.run === step?.run;
  if (view.items.slice(at + 1).some(own)) return;
  const last = view.items.slice(0, at).findLastIndex((item) => item.superseded === true && own(item));
  change(view, last, { superseded: false });
}

/** Tokens of all runs: as a run reports at its end, until then as its steps did. */
function count(view: View): void {
  view.usage = { ...NOTHING };
  for (const run of Object.values(view.runs))
    for (const name of NAMES) view.usage[name] += (run.usage ?? run.spent)[name] ?? 0;
}

/** A run without an end died with its process: what it had begun and not finished does not count. */
function cutShort(view: View, next: string): void {
  for (const run of Object.values(view.runs)) {
    if (run.id === next || run.ended || run.status !== "in_progress") continue;
    run.status = "cut short";
    view.items.forEach((item, index) => {
      if (item.run !== run.id) return;
      if (item.state === "running") change(view, index, { state: "cut short" });
      if (item.complete === false) change(view, index, { complete: true, superseded: true });
    });
  }
}

function text(view: View, envelope: Envelope, payload: Payload, kind: "text" | "reasoning"): void {
  // A message that is replaced by nothing stays on the page, struck out, as what an attempt had emitted.
  if (payload.replace && payload.chunk === "") {
    changeAll(view, (item) => item.kind === kind && item.id === payload.message_id, {
      complete: true,
      superseded: true,
    });
    return;
  }
  const at = view.items.findLastIndex(
    (item) => item.kind === kind && item.id === payload.message_id && !item.superseded,
  );
  const item = view.items[at];
  const more = {
    text: item && !payload.replace && !item.steered ? (item.text as string) + payload.chunk : payload.chunk,
    complete: payload.is_complete,
    steered: payload.steered === true, // shown from `agent.steered`: the message itself may follow
    until: envelope.timestamp,
  };
  if (item) change(view, at, more);
  else
    view.items.push({
      kind,
      key: `${kind} ${payload.message_id} ${envelope.seq}`,
      run: envelope.execution_id,
      id: payload.message_id,
      role: payload.role ?? "assistant",
      lane: payload.subagent_run_id ?? null,
      step: payload.step_number ?? null,
      started: envelope.timestamp,
      seq: envelope.seq,
      ...more,
    });
}

function stepOf(view: View, envelope: Envelope, payload: Payload): unknown {
  const lane = payload.subagent_run_id ?? null;
  const steps = view.items.filter(
    (item) =>
      item.kind === "step" && item.state === "running" && item.lane === lane && item.run === envelope.execution_id,
  );
  return steps.length === 1 ? steps[0]?.number : null;
}
