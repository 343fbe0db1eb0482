// The live page: draws what `watch` tells, and sends a person's answers back. Text goes in as text, never as markup.
import { watch } from "./runcast.js";
import { arrange, steady } from "./steady.js";

const $ = (id) => document.getElementById(id);
const base = new URL(".", location.href);
const query = new URLSearchParams(location.search);
let thread = query.get("thread");
let stop = () => {};
let view = null;
let branchFrom = null;
const NOTHING_YET = $("empty").textContent;

/** An element with attributes, text or children. */
function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

/** What the server answers. An error has its `status`: 0 where no answer came. */
async function call(path, body) {
  const failed = (message, status) => Object.assign(new Error(message), { status });
  const given = body === undefined ? { cache: "no-store", signal: AbortSignal.timeout(20_000) } : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const response = await fetch(new URL(path, base), given);
    if (response.ok) return await response.json();
    const problem = await response.json().catch(() => ({}));
    throw failed(problem.detail ?? problem.title ?? `the server answered ${response.status}`, response.status);
  } catch (error) {
    throw error.status === undefined ? failed("the server cannot be reached", 0) : error;
  }
}

const duration = (ms) => (ms == null ? "" : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`);
const bytes = (n) => (n == null ? "–" : n < 1000 ? `${n} B` : n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`);
const short = (id) => (id.length > 14 ? `${id.slice(0, 8)}…` : id);
const json = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));
const spinner = () => el("span", { class: "spin", role: "img", "aria-label": "running" });
const badge = (state) => (state === "running" ? spinner() : state === "done" ? null : el("span", { class: `badge ${state}` }, state));

// ------------------------------------------------------------------ timeline

const DRAW = {
  run: (item) => el("div", { class: "row run-start", "data-run": item.run }, el("b", {}, "Run"), el("span", { class: "num", title: item.run }, short(item.run)), item.attempt > 1 ? el("span", { class: "badge retry" }, `resumed, attempt ${item.attempt}`) : null, el("time", { datetime: item.at }, new Date(item.at).toLocaleTimeString())),
  step: (item) => el("div", { class: "row" }, el("span", { class: "num" }, `${item.number}.`), el("b", {}, item.name), item.attempt > 1 ? el("span", { class: "badge retry" }, `attempt ${item.attempt}`) : null, badge(item.state), item.usage?.total ? el("span", {}, `${item.usage.total} tokens`) : null, el("span", { class: "right" }, duration(item.ms))),
  subagent: (item) => el("div", { class: "row" }, el("span", { "aria-hidden": "true" }, "↳"), el("b", {}, item.name), el("span", {}, "subagent"), badge(item.state), item.error ? el("span", { class: "badge failed" }, item.error) : null, el("span", { class: "right" }, duration(item.ms))),
  text: (item) => el("div", { class: `prose ${item.role === "user" ? "user" : ""} ${item.complete ? "" : "growing"}` }, item.text),
  ask: (item) => el("div", { class: "said", role: "group", "aria-label": "You said" }, item.text),
  reasoning: (item) => el("details", { class: "thought" }, el("summary", {}, item.complete ? "Thought" : "Thinking…"), el("p", {}, item.text)),
  tool: (item) =>
    el(
      "div",
      { class: "card", "data-state": item.state },
      el("div", { class: "row" }, el("b", {}, item.name ?? "tool"), el("code", {}, item.summary ?? ""), badge(item.state), el("span", { class: "right" }, duration(item.ms))),
      item.result ? el("div", { class: "result" }, el("p", {}, item.result), el("button", { class: "plain", onclick: () => showResult(item) }, "full result")) : null,
      item.error ? el("div", { class: "result error" }, item.error) : null,
    ),
  interrupt: (item) => el("div", { class: "row" }, el("span", { class: "badge interrupted" }, "asked"), el("span", {}, item.message ?? item.reason)),
  error: (item) => el("div", { class: "error", role: "alert" }, item.code ? `${item.code}: ` : "", item.text),
  note: (item) => el("div", { class: "note" }, el("b", {}, item.name), " ", json(item.value)),
};

function drawTimeline() {
  const items = view.items.flatMap((item) => (item.kind === "run" ? [item, ...(asks.get(item.seq) ?? [])] : [item]));
  arrange($("timeline"), items.map((item) => ({ key: item.key, stamp: JSON.stringify(item), make: (before) => drawItem(item, before) })));
  $("empty").hidden = items.length > 0;
}

/** An item in its place: what grows keeps its node, so that a selection in it and its opened parts stay. */
function drawItem(item, node = el("li", { "data-kind": item.kind })) {
  node.className = `${item.lane ? "lane" : ""} ${item.superseded ? "superseded" : ""}`;
  const words = node.querySelector(".prose")?.firstChild;
  if (words) {
    node.firstChild.classList.toggle("growing", !item.complete);
    if (item.text.startsWith(words.data)) words.appendData(item.text.slice(words.length));
    else words.data = item.text;
    return node;
  }
  const open = node.querySelector("details")?.open;
  node.replaceChildren(DRAW[item.kind](item));
  if (open) node.querySelector("details").open = true;
  return node;
}

// What a person said is in no envelope; the log has it, in the event that began the run.
const asks = new Map(); // seq of the run's start -> items
const drawAsks = steady(async () => {
  const look = looks;
  for (const { seq, run } of view?.items.filter((item) => item.kind === "run").reverse() ?? []) {
    if (asks.has(seq)) continue;
    const { events } = await call(`threads/${encodeURIComponent(thread)}/events?after=${seq - 1}&limit=1`);
    if (look !== looks) return;
    asks.set(seq, said(events[0]?.event, run));
    drawTimeline();
  }
});

/** The user's messages that a run began with, and the answers it was given. */
function said(event, run) {
  if (event?.type !== "RUN_STARTED" || event.runId !== run) return [];
  const texts = (event.input?.messages ?? []).filter(({ role }) => role === "user").map(({ id, content }) => [id, plain(content)]);
  const answers = (event.input?.resume ?? []).map(({ interruptId, status, payload }) => [interruptId, status === "cancelled" ? "(cancelled)" : worded(payload)]);
  return [...texts, ...answers].map(([id, text]) => ({ kind: "ask", key: `said ${run} ${id}`, text }));
}

const plain = (content) => (Array.isArray(content) ? content.map((part) => part.text ?? `[${part.type}]`).join("\n") : String(content ?? ""));
function worded(payload) {
  const [only, ...more] = payload && typeof payload === "object" ? Object.values(payload) : [payload];
  if (typeof only === "boolean" && !more.length) return only ? "Yes" : "No";
  return json(payload ?? null);
}

async function showResult(item) {
  $("full-title").textContent = `${item.name}: result`;
  $("full-text").textContent = "reading…";
  $("full").showModal();
  try {
    const { content } = await call(`threads/${encodeURIComponent(thread)}/tools/${encodeURIComponent(item.id)}/result`);
    $("full-text").textContent = json(content);
  } catch (error) {
    $("full-text").textContent = error.message;
  }
}

// ----------------------------------------------------------------- questions

let asked = "";
function drawQuestions() {
  const waiting = view.status === "interrupted" ? view.interrupts : [];
  const stamp = JSON.stringify(waiting);
  if (stamp === asked) return;
  asked = stamp;
  const answers = new Map();
  const answer = async (interrupt, entry) => {
    answers.set(interrupt.id, { interruptId: interrupt.id, ...entry });
    if (answers.size < waiting.length) return drawPending();
    for (const button of $("questions").querySelectorAll("button")) button.disabled = true;
    try {
      await call(`threads/${encodeURIComponent(thread)}/resume`, { answers: [...answers.values()] });
    } catch (error) {
      $("questions").append(el("p", { class: "error", role: "alert" }, error.message));
      for (const button of $("questions").querySelectorAll("button")) button.disabled = false;
    }
  };
  const drawPending = () => {
    $("questions").replaceChildren(...waiting.filter((each) => !answers.has(each.id)).map((each) => question(each, answer)));
  };
  drawPending();
}

/** Whether what was asked holds more than its message. */
function tells({ value, message }) {
  if (value === undefined || value === message) return false;
  return !(value && typeof value === "object" && Object.values(value).every((each) => each === message));
}

function question(interrupt, answer) {
  const box = el("div", { class: "answers" });
  const form = el("form", { class: "question" }, el("p", {}, interrupt.message ?? interrupt.reason), tells(interrupt) ? el("pre", {}, json(interrupt.value)) : null, box);
  const resolved = (payload) => answer(interrupt, { status: "resolved", payload });
  const fields = fieldsOf(interrupt.response_schema);
  if (fields.choices) for (const choice of fields.choices) box.append(el("button", { type: "button", class: choice.plain ? "plain" : null, onclick: () => resolved(choice.value) }, choice.label));
  else {
    for (const field of fields.inputs) box.append(field.node);
    box.append(el("button", {}, "Answer"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      try {
        resolved(fields.read());
      } catch {
        form.append(el("p", { class: "error", role: "alert" }, "That is not valid JSON."));
      }
    });
  }
  box.append(el("button", { type: "button", class: "plain", onclick: () => answer(interrupt, { status: "cancelled" }) }, "Cancel"));
  return form;
}

/** Buttons or inputs for a JSON Schema; free text where there is none. */
export function fieldsOf(schema) {
  if (schema?.type === "boolean") return { choices: [{ label: "Yes", value: true }, { label: "No", value: false, plain: true }] };
  if (Array.isArray(schema?.enum)) return { choices: schema.enum.map((value) => ({ label: String(value), value })) };
  const only = schema?.type === "object" ? Object.entries(schema.properties ?? {}) : [];
  const needed = only.length === 1 ? only : only.filter(([name]) => schema.required?.includes(name));
  if (needed.length === 1) {
    const [[name, each]] = needed; // the one thing that has to be said
    const inner = fieldsOf(each);
    if (inner.choices) return { choices: inner.choices.map((choice) => ({ ...choice, value: { [name]: choice.value } })) };
  }
  if (only.length) {
    const inputs = only.map(([name, each]) => ({ name, each, ...input(each.title ?? name, each) }));
    return { inputs, read: () => Object.fromEntries(inputs.map((field) => [field.name, field.value()])) };
  }
  const single = input("Your answer", schema ?? { type: "string" });
  return { inputs: [single], read: () => single.value() };
}

function input(label, schema) {
  const number = schema.type === "number" || schema.type === "integer";
  const control = schema.type === "boolean" ? el("input", { type: "checkbox" }) : el("input", { type: number ? "number" : "text", step: schema.type === "integer" ? 1 : "any", placeholder: schema.description ?? "" });
  const value = () => {
    if (schema.type === "boolean") return control.checked;
    if (number) return Number(control.value);
    return schema.type === "string" || schema.type === undefined ? control.value : JSON.parse(control.value);
  };
  return { node: el("label", {}, label, control), value };
}

// ------------------------------------------------------------------- details

function drawHead(link) {
  const pill = $("status");
  const word = stalled ? "cut short" : (view.status ?? "no run").replace("_", " ");
  if (pill.textContent !== word) pill.textContent = word;
  pill.dataset.status = stalled ? "stalled" : (view.status ?? "");
  $("stop").hidden = view.status !== "in_progress" || stalled;
  $("resume").hidden = !stalled;
  const state = link.error === "refused" ? "refused" : link.state;
  const said = { live: "live", recovering: link.behind ? `recovering, ${link.behind} behind` : "recovering", connecting: "reconnecting", refused: "not allowed" }[state];
  $("link").dataset.state = state;
  const label = $("link").querySelector("b");
  if (label.textContent !== said) label.textContent = said;
  $("link").title = `position ${link.last}`;
  $("empty").textContent = state === "refused" ? "This thread is not yours to watch." : NOTHING_YET;
}

function drawElapsed() {
  const run = view?.runs[view.run];
  if (!run) return;
  if (stalled) return;
  const end = run.ended ? Date.parse(run.ended) : Date.now();
  $("elapsed").textContent = duration(Math.max(0, end - Date.parse(run.started)));
}

function drawDetails() {
  const { prompt, completion, total } = view.usage;
  const [first, second] = $("usage").children;
  if (total) {
    first.style.width = `${(100 * prompt) / total}%`;
    second.style.width = `${(100 * completion) / total}%`;
    $("usage-text").textContent = `${total} tokens: ${prompt} in, ${completion} out`;
    $("usage").setAttribute("aria-label", $("usage-text").textContent);
  }
  if (view.state !== null) $("state").textContent = json(view.state);
  if (view.lastPatch) $("patch").textContent = `last change: ${view.lastPatch.map((each) => `${each.op} ${each.path}`).join(", ")}`;
  $("count").textContent = view.missed ? `${view.count}, ${view.missed} not told` : String(view.count);
  if ($("raw").open) drawLog();
}

function shown() {
  const wanted = $("filter").value.toLowerCase();
  return view.envelopes.filter((each) => !wanted || JSON.stringify(each).toLowerCase().includes(wanted));
}

function drawLog() {
  $("log").replaceChildren(
    ...shown()
      .slice(-200)
      .reverse()
      .map((each) => el("li", {}, `${each.seq} `, el("b", {}, each.type.replace("agent.", "")), ` ${JSON.stringify(each.payload)}`)),
  );
}

// ------------------------------------------------------------ threads, runs

let chosen = Boolean(thread); // whether somebody has said what to look at
const drawThreads = steady(async () => {
  const { threads } = await call("threads");
  threads.sort((one, other) => other.updated_at - one.updated_at);
  arrange($("threads"), threads.map((each) => ({ key: each.thread_id, stamp: JSON.stringify([each, each.thread_id === thread]), make: () => threadRow(each) })));
  if (!chosen && threads.length) show(threads[0].thread_id);
});

function threadRow({ thread_id, active, last_seq }) {
  const current = thread_id === thread ? "true" : null;
  return el("li", {}, el("button", { "aria-current": current, onclick: () => show(thread_id) }, el("span", { title: thread_id }, thread_id), active ? spinner() : null, el("small", {}, String(last_seq))));
}

const drawRuns = steady(async () => {
  const wanted = thread;
  if (wanted === null) return;
  const { runs, size } = await call(`threads/${encodeURIComponent(wanted)}/runs`);
  if (wanted !== thread) return; // who changed it has asked again
  const depth = new Map();
  for (const run of runs) {
    const forks = runs.filter((each) => each.parent === run.parent).length > 1 && run.parent !== null;
    depth.set(run.run_id, (depth.get(run.parent) ?? 0) + (forks ? 1 : 0));
  }
  const ready = $("start").dataset.ready;
  arrange($("runs"), runs.map((run) => ({ key: run.run_id, stamp: JSON.stringify([run, depth.get(run.run_id), ready]), make: () => runRow(run, depth.get(run.run_id), ready) })));
  const newest = runs.at(-1);
  const was = stalled;
  stalled = newest?.status === "truncated" && view?.run === newest.run_id;
  if (was !== stalled && lastLink) drawHead(lastLink);
  $("size").replaceChildren(...[["events", size.events], ["as they came", bytes(size.bytes)], ["compacted", bytes(size.compacted)], ["snapshot", bytes(size.snapshot)]].flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, String(value ?? "–"))]));
});

function runRow(run, depth, ready) {
  const look = () => document.querySelector(`[data-run="${CSS.escape(run.run_id)}"]`)?.scrollIntoView({ block: "center" });
  const row = el("li", {}, el("button", { title: `${run.run_id} (${run.edge})`, onclick: look }, el("span", {}, short(run.run_id)), run.attempt > 1 ? el("span", { class: "badge retry" }, `×${run.attempt}`) : null, el("small", { "data-status": run.status }, run.status.replace("_", " "))));
  row.style.setProperty("--depth", depth);
  if (run.status !== "in_progress" && ready) row.append(el("button", { class: "branch", onclick: () => branch(run.run_id) }, "branch from here"));
  return row;
}

/** The next message goes on from this run; null: from the thread's end. */
function branch(runId) {
  branchFrom = runId;
  $("branching").hidden = runId === null;
  if (runId === null) return;
  $("branching").replaceChildren(`goes on from ${short(runId)} `, el("button", { type: "button", class: "link-like", onclick: () => branch(null) }, "from the end instead"));
  $("ask").focus();
}

const drawAgents = steady(async () => {
  const { agents } = await call("agents");
  if (!agents.length) return;
  $("agent").replaceChildren(...agents.map((each) => el("option", {}, each.name)));
  $("start").dataset.ready = "yes";
  $("start").hidden = false;
  drawRuns(); // they can be branched off now
});

$("start").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = $("ask").value.trim();
  const button = $("start").querySelector("button:not([type])");
  if (!text || button.disabled) return;
  const from = thread;
  chosen = true;
  button.disabled = true; // one run a message
  $("branching").hidden = branchFrom === null;
  try {
    const started = await call(from === null ? "runs" : `threads/${encodeURIComponent(from)}/runs`, { agent: $("agent").value, message: text, from_run: branchFrom });
    if (from !== thread) return; // somebody looks at another thread by now
    $("ask").value = "";
    branch(null);
    if (started.thread_id !== from) show(started.thread_id);
    drawThreads();
  } catch (error) {
    if (from === thread) complain(error);
  } finally {
    button.disabled = false;
  }
});
$("ask").addEventListener("input", () => (chosen = true));
$("ask").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) $("start").requestSubmit();
});

const complain = (error) => {
  $("branching").hidden = false;
  $("branching").textContent = error.message;
};
$("stop").addEventListener("click", () => call(`runs/${encodeURIComponent(view.run)}/stop`, {}).catch(complain));
$("resume").addEventListener("click", () => call(`threads/${encodeURIComponent(thread)}/resume`, {}).catch(complain));
$("fresh").addEventListener("click", fresh);
$("copy").addEventListener("click", async () => {
  const text = shown().map((each) => JSON.stringify(each)).join("\n");
  // A page that came over plain http from elsewhere has no clipboard.
  const done = await (navigator.clipboard?.writeText(text).then(() => true, () => false) ?? false);
  $("copied").textContent = done ? `${shown().length} copied` : "the browser does not let this page copy";
});
$("filter").addEventListener("input", drawLog);
$("raw").addEventListener("toggle", drawLog);
document.addEventListener("keydown", (event) => {
  if (event.target.closest?.("input, textarea, select") || event.metaKey || event.ctrlKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    $("raw").open = true;
    $("filter").focus();
  } else if (event.key === "n") {
    event.preventDefault();
    $("ask").focus();
  } else if (event.key === "c") {
    event.preventDefault();
    fresh();
  }
});

let lastStatus = null;
let lastLink = null;
let stalled = false; // the newest run's process died, and nobody has taken it up
let looks = 0; // how often somebody chose what to look at: what an earlier choice still tells is not drawn

/** Leave the thread that was looked at. */
function leave() {
  looks += 1;
  stop();
  stop = () => {};
  chosen = true;
  view = lastLink = lastStatus = null;
  delete globalThis.runcast;
  $("empty").textContent = NOTHING_YET;
  stalled = false;
  asked = "";
  asks.clear();
  branch(null);
  for (const id of ["timeline", "runs"]) arrange($(id), []);
  for (const id of ["questions", "size"]) $(id).replaceChildren();
  for (const each of document.querySelectorAll("#threads [aria-current]")) each.removeAttribute("aria-current");
}

function fresh() {
  leave();
  thread = null;
  history.replaceState(null, "", location.pathname);
  $("title").textContent = "";
  $("status").textContent = "no run";
  $("status").dataset.status = "";
  $("elapsed").textContent = "";
  $("empty").hidden = false;
  $("ask").focus();
  drawThreads();
}

function show(threadId) {
  leave();
  const look = looks;
  thread = threadId;
  history.replaceState(null, "", `?thread=${encodeURIComponent(threadId)}`);
  $("title").textContent = threadId;
  document.title = `${threadId} · runcast`;
  stop = watch({ base: base.href, thread, onChange: (now, link) => look === looks && changed(now, link) });
  drawRuns();
  drawThreads();
}

function changed(now, link) {
  const bottom = innerHeight + scrollY > document.body.scrollHeight - 120;
  view = now;
  lastLink = link;
  const status = `${view.run} ${view.status}`;
  if (status !== lastStatus) {
    lastStatus = status;
    stalled = false;
    drawRuns();
    drawThreads();
    drawAsks();
  }
  drawHead(link);
  drawTimeline();
  drawQuestions();
  drawDetails();
  drawElapsed();
  if (bottom && view.status === "in_progress") scrollTo(0, document.body.scrollHeight);
  globalThis.runcast = { view, link, drawn: view.count }; // for tests, and for whoever looks from the console
}

setInterval(drawElapsed, 500);
// A run whose process died tells nothing: the log knows when its lease is over.
setInterval(() => view?.status === "in_progress" && drawRuns(), 2000);
// Threads that are begun elsewhere are seen too.
setInterval(() => document.hidden || drawThreads(), 5000);
if (thread) show(thread);
else drawThreads();
drawAgents();
