// The official HttpAgent against a real endpoint: runs what stdin says, prints what an application would have seen.
//
//   {"url", "threadId", "headers"?, "runs": [{"runId"?, "say"?, "tools"?, "resume"?, "result"?, "leaveAfter"?}]}
//
// `say` adds a user message, `result` answers the newest tool call; with `leaveAfter` the client goes away after so
// many events.
import { HttpAgent } from "@ag-ui/client";

console.warn = console.debug = console.info = console.error = () => {};
process.env.SUPPRESS_TRANSFORMATION_WARNINGS = "1";

let text = "";
for await (const part of process.stdin) text += part;
const { url, threadId, headers, runs } = JSON.parse(text);
const agent = new HttpAgent({ url, threadId, headers });
const answers = [];

for (const run of runs) {
  if (run.say) agent.addMessage({ id: `u-${answers.length}`, role: "user", content: run.say });
  if (run.result) {
    const call = agent.messages.findLast((message) => message.toolCalls?.length).toolCalls.at(-1);
    agent.addMessage({ id: `t-${answers.length}`, role: "tool", toolCallId: call.id, content: run.result });
  }
  const events = [];
  const answer = { events, error: null };
  const controller = new AbortController();
  const subscriber = {
    onEvent({ event }) {
      events.push(event.type);
      if (run.leaveAfter && events.length === run.leaveAfter) controller.abort();
    },
    onRunErrorEvent({ event }) {
      answer.error = { message: event.message, code: event.code };
    },
    onRunFinishedEvent({ event }) {
      answer.outcome = event.outcome;
    },
  };
  const { runId, tools, resume } = run;
  try {
    await agent.runAgent({ runId, tools, resume, abortController: controller }, subscriber);
  } catch (error) {
    answer.raised = String(error?.message ?? error);
  }
  answers.push({ ...answer, messages: structuredClone(agent.messages) });
}
process.stdout.write(JSON.stringify(answers));
process.exit(0);
