// RuncastAgent, and beside it the official HttpAgent, on lines that break; what an application saw goes to stdout.
//
//   node runcast_agent.mjs <folder of agent.js>
//   one request a line on stdin, one answer a line on stdout:
//   {"op": "follow", "url", "threads": [{"id", "count"}], "every"}   "ready", and the answer once so many events were seen
//   {"op": "whole", "threads": [{"id", "runs": [[event]]}]}            what the client makes of whole runs
//   {"op": "run", "url", "asks": [{"thread", "run", "say", "cut"}], "official"?, "every"?}
//   {"op": "begin", "url", "thread", "run", "say"}                     "begun": the run goes on beside what is asked next
//   {"op": "end", "thread"}                                            once it has ended, what was seen of it
//   {"op": "call", "url", "thread", "method", "args"?}                 what a method gives, and what is seen then
//   {"op": "look", "url", "thread"}                                    what is seen now
//   {"op": "leave", "thread"}                                          true: the next agent of the thread is a new one
//
// A line breaks after `every` events; or once, `cut` events after its beginning.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { AbstractAgent, HttpAgent } from "@ag-ui/client";
import { Observable } from "rxjs";

console.warn = console.debug = console.info = console.error = () => {};
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "1";
const { RuncastAgent } = await import(pathToFileURL(process.argv[2]).href);
let unhandled = 0; // an HttpAgent whose line breaks leaves a rejection that ends a Node process
process.on("unhandledRejection", () => (unhandled += 1));
const DONE = new TextEncoder().encode("\n\n");

/** fetch, on a line that breaks after so many events: as a reset connection does, in the middle of the next one. */
function breaking(every, times = Infinity) {
  let left = times;
  return async (url, init) => {
    const response = await fetch(url, init);
    if (!(response.headers.get("content-type") ?? "").includes("event-stream")) return response;
    const reader = response.body.getReader();
    let seen = 0;
    let held = new Uint8Array();
    const body = new ReadableStream({
      async pull(controller) {
        for (;;) {
          const at = find(held);
          if (at >= 0 && seen === every && left > 0) {
            left -= 1;
            void reader.cancel().catch(() => {});
            controller.enqueue(held.subarray(0, Math.max(1, at >> 1)));
            await new Promise((done) => setTimeout(done));
            return controller.error(new TypeError("terminated"));
          }
          if (at >= 0) {
            const block = held.subarray(0, at + 2);
            held = held.subarray(at + 2);
            if (block[0] !== 58) seen += 1; // no comment
            controller.enqueue(block);
            return;
          }
          const { done, value } = await reader.read();
          if (done) return controller.close();
          held = joined(held, value);
        }
      },
      cancel: (reason) => reader.cancel(reason),
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

function find(bytes) {
  for (let at = 0; at + 1 < bytes.length; at += 1) if (bytes[at] === DONE[0] && bytes[at + 1] === DONE[1]) return at;
  return -1;
}

function joined(one, other) {
  const both = new Uint8Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

class Scripted extends AbstractAgent {
  script = [];
  run() {
    return new Observable((observer) => {
      for (const event of this.script) observer.next(structuredClone(event));
      observer.complete();
    });
  }
}

function watched(agent) {
  const events = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(structuredClone(event)) });
  return events;
}

const seen = (agent, events, more = {}) => ({ events, messages: agent.messages, state: agent.state, ...more });

async function follow({ url, threads, every }) {
  const agents = threads.map(({ id }) => new RuncastAgent({ url, threadId: id, fetch: breaking(every) }));
  const events = agents.map(watched);
  const leave = agents.map((agent) => agent.follow());
  await Promise.all(agents.map((agent) => agent.connectAgent()));
  process.stdout.write('"ready"\n');
  const over = ({ count }, at) => events[at].length >= count && !agents[at].isRunning;
  while (!threads.every(over)) await new Promise((done) => setTimeout(done, 20));
  leave.forEach((each) => each());
  return agents.map((agent, at) => seen(agent, events[at]));
}

async function whole({ threads }) {
  const answers = [];
  for (const { id, runs } of threads) {
    const agent = new Scripted({ threadId: id });
    const events = watched(agent);
    for (agent.script of runs) {
      agent.pendingInterrupts = []; // they were answered elsewhere
      await agent.runAgent().catch(() => {});
    }
    answers.push(seen(agent, events));
  }
  return answers;
}

async function run({ url, asks, official = false, every }) {
  const Agent = official ? HttpAgent : RuncastAgent;
  const answers = [];
  for (const { thread, run, say, cut } of asks) {
    const fetch = cut === undefined ? breaking(every ?? Infinity) : breaking(cut, 1);
    const agent = new Agent({ url, threadId: thread, fetch });
    const events = watched(agent);
    agent.addMessage({ id: `u-${run}`, role: "user", content: say });
    let raised = null;
    await agent.runAgent({ runId: run }).catch((error) => (raised = String(error?.message ?? error)));
    answers.push(seen(agent, events, { raised, unhandled }));
  }
  return answers;
}

const kept = new Map(); // agents that stay, by their threads

function agentOf({ url, thread }) {
  if (!kept.has(thread)) {
    const agent = new RuncastAgent({ url, threadId: thread, patience: 2000 });
    kept.set(thread, { agent, events: watched(agent), ended: null });
  }
  return kept.get(thread);
}

function begin({ url, thread, run, say }) {
  const held = agentOf({ url, thread });
  held.agent.addMessage({ id: `u-${run}`, role: "user", content: say });
  held.ended = held.agent.runAgent({ runId: run }).then(
    () => null,
    (error) => String(error?.message ?? error),
  );
  return "begun";
}

async function end({ thread }) {
  const { agent, events, ended } = kept.get(thread);
  return seen(agent, events, { raised: await ended, unhandled });
}

async function call({ url, thread, method, args = [] }) {
  const { agent, events } = agentOf({ url, thread });
  const given = await agent[method](...args);
  return seen(agent, events, { given: given ?? null });
}

function look(asked) {
  const { agent, events } = agentOf(asked);
  return seen(agent, events);
}

const OPS = { follow, whole, run, begin, end, call, look, leave: ({ thread }) => kept.delete(thread) };
for await (const text of createInterface({ input: process.stdin })) {
  const request = JSON.parse(text);
  process.stdout.write(JSON.stringify(await OPS[request.op](request)) + "\n");
}
process.exit(0);
