// The AI SDK's chat against a real endpoint, as `useChat` drives it but without React: does what stdin says, prints
// the messages after each step.
//
//   {"api", "id", "load"?, "steps": [{"say"} | {"files"} | {"again"} | {"edit", "text"} | {"approve"} | {"answers"} |
//     {"result"} | {"leaveAfter"} | {"resume"}]}
//
// `load` fetches the first messages, as a page does after a reload; `leaveAfter` goes away after so many characters.
import { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

let text = "";
for await (const part of process.stdin) text += part;
const { api, id, load, steps, automatic } = JSON.parse(text);

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => {
    this.messages = this.messages.map((each, at) => (at === index ? structuredClone(message) : each));
    leave(this.messages);
  };
  snapshot = (value) => structuredClone(value);
}

let leaving = 0;
const written = (messages) =>
  (messages.at(-1)?.parts ?? []).reduce((sum, part) => sum + (part.type === "text" ? part.text.length : 0), 0);
function leave(messages) {
  if (leaving && messages.at(-1)?.role === "assistant" && written(messages) >= leaving) {
    leaving = 0;
    void chat.stop();
  }
}

const errors = [];
class Chat extends AbstractChat {
  constructor() {
    super({
      id,
      state: new State(),
      transport: new DefaultChatTransport({ api }),
      onError: (error) => errors.push(String(error?.message ?? error)),
      sendAutomaticallyWhen: automatic ? lastAssistantMessageIsCompleteWithApprovalResponses : undefined,
    });
  }
}
const chat = new Chat();
if (load) chat.messages = (await (await fetch(load)).json()).messages;

const answers = [];
for (const step of steps) {
  if (step.leaveAfter) leaving = step.leaveAfter;
  const parts = chat.lastMessage?.parts ?? [];
  if (step.say) await chat.sendMessage({ text: step.say, files: step.files });
  if (step.again) await chat.regenerate();
  if (step.edit !== undefined) {
    const user = chat.messages.filter((message) => message.role === "user")[step.edit];
    await chat.sendMessage({ text: step.text, messageId: user.id });
  }
  if (step.approve !== undefined) {
    const asked = parts.find((part) => part.state === "approval-requested");
    await chat.addToolApprovalResponse({ id: asked.approval.id, approved: step.approve });
    if (!automatic) await chat.sendMessage();
  }
  if (step.answers) await chat.sendMessage(undefined, { body: { answers: step.answers } });
  if (step.result) {
    const call = parts.find((part) => part.state === "input-available");
    await chat.addToolOutput({ toolCallId: call.toolCallId, tool: call.toolName, output: step.result });
    await chat.sendMessage();
  }
  if (step.resume) await chat.resumeStream();
  while (chat.status === "submitted" || chat.status === "streaming") await new Promise((done) => setTimeout(done, 10));
  answers.push({ messages: structuredClone(chat.messages), errors: errors.splice(0) });
}
process.stdout.write(JSON.stringify(answers));
process.exit(0);
