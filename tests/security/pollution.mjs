// Feeds the page's reducer what a hostile agent could say, and prints what came of it. Called by test_page_reducer.py.
import { pathToFileURL } from "node:url";

const { apply, initial, patched } = await import(pathToFileURL(process.argv[2]));
const envelope = (type, payload, run = "r1", seq = 1) => ({ type, session_id: "t", execution_id: run, seq, prev: 0, epoch: "e", timestamp: "2026-01-16T10:05:00.123Z", payload });
const view = initial("t");
const found = [];
for (const run of ["__proto__", "constructor", "prototype", "toString"]) {
  apply(view, envelope("agent.status", { status: "in_progress", attempt: 7 }, run));
  apply(view, envelope("agent.status", { status: "failed", error_message: "polluted", usage: { prompt: 1, completion: 1, total: 2 } }, run));
  found.push([run, view.runs[run]?.status ?? null]);
}
for (const type of ["__proto__", "constructor", "toString", "hasOwnProperty"]) apply(view, envelope(type, {}));
const documents = [
  patched({}, [{ op: "add", path: "/__proto__/polluted", value: "yes" }]),
  patched({}, [{ op: "add", path: "/constructor/prototype/polluted", value: "yes" }]),
  patched([], [{ op: "add", path: "/__proto__/polluted", value: "yes" }]),
  patched({}, [{ op: "copy", from: "/__proto__", path: "/a" }, { op: "add", path: "/a/polluted", value: "yes" }]),
  patched({}, [{ op: "move", from: "/constructor/prototype", path: "/a" }]),
  patched({ a: 1 }, [{ op: "remove", path: "/__proto__" }]),
];
const named = patched({}, [{ op: "add", path: "/__proto__", value: { polluted: "yes" } }]);
console.log(JSON.stringify({
  clean: ["polluted", "status", "attempt", "error", "usage", "started", "spent"].every((name) => ({})[name] === undefined && (() => {})[name] === undefined),
  untouched: documents.every((each) => each.polluted === undefined && each.a?.polluted === undefined),
  refused: Object.getOwnPropertyNames(named).length === 0 && Object.getPrototypeOf(named) === Object.prototype,
  runs: found,
  count: view.count,
}));
