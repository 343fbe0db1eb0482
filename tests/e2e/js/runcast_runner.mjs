// RuncastRunner as CopilotKit's runtime calls it: `run`, `connect`, `isRunning`, `stop`, each by a line on stdin.
//
//   node runcast_runner.mjs <agui.js> <runcast url>
//   {"op": "run", "thread", "run", "say"} {"op": "connect", "thread"}   one line for each event, then {"over": true}
//   {"op": "running", "thread"} {"op": "stop", "thread", "run"?}        one line
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { HttpAgent } from "@ag-ui/client";

console.warn = console.debug = console.info = console.error = () => {};
const [module, url] = process.argv.slice(2);
const { RuncastRunner } = await import(pathToFileURL(module).href);
const runner = new RuncastRunner({ url, patience: 2000 });
const print = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const show = (events) => events.subscribe({ next: print, complete: () => print({ over: true }) });

const OPS = {
  run({ thread, run, say }) {
    // The runtime brings an agent of its own for each request; a plain one breaks with its line.
    const agent = new HttpAgent({ url: `${url}/agents/helper`, threadId: thread });
    const messages = [{ id: `u-${run}`, role: "user", content: say }];
    agent.setMessages(messages);
    const input = { threadId: thread, runId: run, messages, state: {}, tools: [], context: [], forwardedProps: {} };
    show(runner.run({ threadId: thread, agent, input }));
  },
  connect: ({ thread }) => show(runner.connect({ threadId: thread, agentId: "helper" })),
  running: async ({ thread }) => print(await runner.isRunning({ threadId: thread })),
  stop: async ({ thread, run }) => print(await runner.stop({ threadId: thread, ...(run ? { runId: run } : {}) })),
};
for await (const text of createInterface({ input: process.stdin })) {
  const request = JSON.parse(text);
  void OPS[request.op](request);
}
