// The official TypeScript client as a judge: one request a line on stdin, one answer a line on stdout.
//
//   {"op": "verify",   "events": [...]}                        verifyEvents alone
//   {"op": "pipeline", "events": [...]}                        enforceEvents -> transformChunks -> verifyEvents
//   {"op": "accepts",  "events": [...]}                        the same; `passed` counts events that went in
//   {"op": "chunks",   "events": [...]}                        transformChunks alone
//   {"op": "apply",    "events": [...], "messages"?, "state"?} defaultApplyEvents alone, on a client that holds these
//                                                              ("expand": true runs transformChunks first)
//   {"op": "compact",  "events": [...]}                        compactEvents
//   {"op": "patch",    "document": ..., "patch": [...]}        fast-json-patch, as the client calls it
//   {"op": "run",      "runs": [{"events": [...], "resume"?, "runId"?}], "messages"?, "state"?}
//                                                              AbstractAgent.runAgent, one run after the other
//   {"op": "run_earlier", ...}                                 the same, on client 0.0.59
//   {"op": "schema",   "events": [...]}                        EventSchema, and whether enforceEvents keeps all of it
//   {"op": "earlier",  "events": [...]}                        schemas, transformChunks and verifyEvents of client 0.0.59
//   {"op": "boundary", "events": [...]}                        the translator of older dialects alone
//   {"op": "time_compact", "path": file, "rounds": n}          what compactEvents takes, alone and from bytes to bytes
//   {"op": "batch",    "requests": [...]}                      many of these in one line
import { readFileSync } from "node:fs";
import readline from "node:readline";
import { EventEmitter } from "node:events";
import {
  AbstractAgent,
  compactEvents,
  defaultApplyEvents,
  enforceEvents,
  transformChunks,
  verifyEvents,
} from "@ag-ui/client";
import * as earlier from "ag-ui-client-earlier";
import jsonpatch from "fast-json-patch";
import { from, lastValueFrom, Observable } from "rxjs";
import { ignoreElements, tap, toArray } from "rxjs/operators";
import { EventSchema } from "@ag-ui/core/schemas";

EventEmitter.defaultMaxListeners = 0;
console.warn = console.debug = console.info = () => {};
console.error = () => {};
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "1";

const PASSED_THROUGH = new Set([
  "CUSTOM",
  "RAW",
  "STEP_STARTED",
  "STEP_FINISHED",
  "SUBAGENT_STARTED",
  "SUBAGENT_FINISHED",
  "SUBAGENT_ERROR",
]);

/** Runs operators over events; says how many came out before the first complaint. */
async function through(events, ...operators) {
  const out = [];
  let source = from(events);
  for (const operator of operators) source = operator(source);
  try {
    await lastValueFrom(source.pipe(tap((event) => out.push(event)), toArray()), { defaultValue: [] });
    return { ok: true, passed: out.length, events: out };
  } catch (error) {
    return { ok: false, passed: out.length, error: String(error?.message ?? error), events: out };
  }
}

/** What the client's pipeline says of a stream: how many events went in before the first complaint. */
async function accepts(events) {
  let taken = 0;
  const counted = from(events).pipe(tap(() => (taken += 1)), enforceEvents(), transformChunks(), verifyEvents());
  try {
    await lastValueFrom(counted.pipe(ignoreElements()), { defaultValue: null });
    return { ok: true, passed: taken };
  } catch (error) {
    return { ok: false, passed: taken - 1, error: String(error?.message ?? error) };
  }
}

/** What the client that CopilotKit ships makes of a stream: it parses each event by its schema, then verifies. */
function byEarlierClient({ events }) {
  for (const [at, event] of events.entries()) {
    const parsed = earlier.EventSchemas.safeParse(event);
    if (!parsed.success) {
      const issues = parsed.error.issues.slice(0, 5).map((each) => `${each.path.join(".")}: ${each.message}`);
      return { ok: false, passed: at, error: `${event.type}: ${issues.join("; ")}` };
    }
  }
  return through(events, earlier.transformChunks(false), earlier.verifyEvents(false));
}

/** Notes what an application would see besides messages and state. */
function recorder(runs, passed) {
  let current = null;
  return {
    onEvent({ event }) {
      if (event.type === "RUN_STARTED") {
        current = { runId: event.runId, parentRunId: event.parentRunId ?? null };
        runs.push(current);
      } else if (event.type === "RUN_ERROR") {
        if (current === null) runs.push((current = { runId: null, parentRunId: null }));
        current.error = { message: event.message, code: event.code ?? null, usage: event.usage ?? null };
      } else if (PASSED_THROUGH.has(event.type)) {
        passed.push(event);
      }
    },
    onRunFinishedEvent({ event, outcome, result, pendingToolCallIds }) {
      if (current === null) runs.push((current = { runId: null, parentRunId: null }));
      current.outcome = outcome;
      if (event.result !== undefined) current.result = event.result;
      if (event.usage !== undefined) current.usage = event.usage;
      if (pendingToolCallIds !== undefined) current.pendingToolCallIds = pendingToolCallIds;
    },
  };
}

async function apply({ events, messages = [], state = {}, expand = false }) {
  if (expand) {
    const whole = await through(events, transformChunks());
    if (!whole.ok) return { ok: false, error: whole.error };
    events = whole.events;
  }
  const agent = { messages: structuredClone(messages), state, pendingInterrupts: [] };
  const input = { threadId: "t", runId: "r", messages: agent.messages, state, tools: [], context: [] };
  const runs = [];
  const passed = [];
  let view = { messages: agent.messages, state };
  try {
    await lastValueFrom(
      defaultApplyEvents(input, from(structuredClone(events)), agent, [recorder(runs, passed)]).pipe(
        tap((mutation) => {
          if (mutation.messages !== undefined) view.messages = mutation.messages;
          if (mutation.state !== undefined) view.state = mutation.state;
        }),
      ),
      { defaultValue: undefined },
    );
  } catch (error) {
    return { ok: false, error: String(error?.message ?? error) };
  }
  return { ok: true, ...view, pendingInterrupts: agent.pendingInterrupts, runs, passed };
}

const scripted = (Client) =>
  class extends Client {
    script = [];
    run() {
      const events = this.script;
      return new Observable((observer) => {
        for (const event of events) observer.next(structuredClone(event));
        observer.complete();
      });
    }
  };
const ScriptedAgent = scripted(AbstractAgent);
const EarlierAgent = scripted(earlier.AbstractAgent);

async function run({ runs, messages = [], state = {}, threadId = "t1" }, Agent = ScriptedAgent) {
  const agent = new Agent({ threadId, initialMessages: messages, initialState: state });
  const seen = [];
  const passed = [];
  const errors = [];
  agent.subscribe(recorder(seen, passed));
  agent.subscribe({ onRunFailed: ({ error }) => void errors.push(String(error?.message ?? error)) });
  for (const { events, resume, runId, message } of runs) {
    agent.script = events;
    if (message !== undefined) agent.messages = [...agent.messages, message];
    try {
      await agent.runAgent({ runId, ...(resume !== undefined && { resume }) });
    } catch (error) {
      const text = String(error?.message ?? error);
      if (!errors.includes(text)) errors.push(text);
    }
  }
  return {
    ok: errors.length === 0,
    errors,
    messages: agent.messages,
    state: agent.state,
    pendingInterrupts: agent.pendingInterrupts,
    runs: seen,
    passed,
  };
}

function patch({ document, patch: operations }) {
  let patched;
  try {
    patched = jsonpatch.applyPatch(document, operations, true, false).newDocument;
  } catch (error) {
    return { ok: false, error: String(error?.name ?? error) };
  }
  try {
    JSON.stringify(patched);
  } catch {
    return { ok: true, circular: true }; // moving the root into itself
  }
  return { ok: true, document: patched };
}

/** Whether nothing of what was given is gone; a state of null may be, since it reads as no state. */
function kept(given, seen, key) {
  if (given === null && key === "state" && seen === undefined) return true;
  if (typeof given !== "object" || given === null) return Object.is(given, seen) || given === seen;
  if (typeof seen !== "object" || seen === null || Array.isArray(given) !== Array.isArray(seen)) return false;
  if (Array.isArray(given) && given.length !== seen.length) return false;
  return Object.keys(given).every((name) => Object.hasOwn(seen, name) && kept(given[name], seen[name], name)
    || (name === "state" && given[name] === null));
}

/** Valid to the letter: the schema takes it, and enforcement finds nothing in it to strip or drop. */
async function schema(event) {
  const parsed = EventSchema.safeParse(event);
  if (!parsed.success) return { ok: false, error: parsed.error.issues[0]?.path?.join(".") ?? "" };
  const enforced = await through([event], enforceEvents());
  return enforced.events.length === 1 && kept(event, enforced.events[0])
    ? { ok: true }
    : { ok: false, error: "unknown material" };
}

/** What middleware sees right behind the compatibility boundary; nothing goes any further. */
async function boundary({ events }) {
  const agent = new ScriptedAgent({ threadId: "t1" });
  const seen = [];
  agent.script = events;
  agent.use((input, next) => next.run(input).pipe(tap((event) => void seen.push(event)), ignoreElements()));
  await agent.runAgent({});
  return { ok: true, events: seen };
}

/** Round after round: milliseconds of compacting events, and of the processor for a file of JSON Lines to another. */
function timeCompact({ path, rounds }) {
  const file = readFileSync(path);
  const compact = [];
  const whole = [];
  for (let round = 0; round < rounds; round++) {
    const used = process.cpuUsage();
    const events = file.toString().trimEnd().split("\n").map((line) => JSON.parse(line));
    const before = performance.now();
    const small = compactEvents(events);
    compact.push(performance.now() - before);
    Buffer.from(small.map((event) => JSON.stringify(event)).join("\n"));
    const { user, system } = process.cpuUsage(used);
    whole.push((user + system) / 1000);
  }
  return { ok: true, compact, whole };
}

async function answer(request) {
  switch (request.op) {
    case "time_compact":
      return timeCompact(request);
    case "verify":
      return through(request.events, verifyEvents());
    case "pipeline":
      return through(request.events, enforceEvents(), transformChunks(), verifyEvents());
    case "accepts":
      return accepts(request.events);
    case "chunks":
      return through(request.events, transformChunks());
    case "apply":
      return apply(request);
    case "compact":
      return { ok: true, events: compactEvents(request.events) };
    case "patch":
      return patch(request);
    case "run":
      return run(request);
    case "run_earlier":
      return run(request, EarlierAgent);
    case "schema":
      return { ok: true, verdicts: await Promise.all(request.events.map(schema)) };
    case "earlier":
      return byEarlierClient(request);
    case "boundary":
      return boundary(request);
    case "batch": {
      const answers = [];
      for (const each of request.requests) answers.push(await answer(each));
      return { ok: true, answers };
    }
    default:
      return { ok: false, error: `unknown op ${request.op}` };
  }
}

for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let reply;
  try {
    reply = await answer(JSON.parse(line));
  } catch (error) {
    reply = { ok: false, harness: true, error: String(error?.stack ?? error) };
  }
  process.stdout.write(JSON.stringify(reply) + "\n");
}
