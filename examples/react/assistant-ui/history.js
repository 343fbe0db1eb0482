// What assistant-ui asks for when it starts: the thread so far, and the answer that is being written.
//
// `connectAgent` brings both. assistant-ui shows one message for each answer, with its texts and tools in a row.
import { ExportedMessageRepository } from "@assistant-ui/react";

/** All that an agent said and did after a question, as the parts of one message. */
function parts(messages) {
  const results = new Map(
    messages.filter(({ role }) => role === "tool").map((each) => [each.toolCallId, each.content]),
  );
  return messages
    .filter(({ role }) => role === "assistant")
    .flatMap(({ content, toolCalls = [] }) => [
      ...(content ? [{ type: "text", text: content }] : []),
      ...toolCalls.map(({ id, function: { name, arguments: argsText } }) => ({
        type: "tool-call",
        toolCallId: id,
        toolName: name,
        argsText,
        result: results.get(id),
      })),
    ]);
}

/** Questions and answers in turn. */
function turns(messages) {
  const at = messages.flatMap(({ role }, n) => (role === "user" ? [n] : []));
  return at.flatMap((from, n) => {
    const content = parts(messages.slice(from + 1, at[n + 1]));
    const { id, content: question } = messages[from];
    const asked = { id, role: "user", content: question };
    return content.length === 0 ? [asked] : [asked, { id: `${id}-answer`, role: "assistant", content }];
  });
}

/** The history of the agent's thread, read by an agent of its own. */
export function historyOf(agent) {
  const reader = agent.clone();
  let over = false;
  let failure = null;
  let tell = () => {};
  const change = () => new Promise((done) => (tell = done));
  reader.subscribe({ onMessagesChanged: () => tell() });
  return {
    async load() {
      const first = change();
      reader
        .connectAgent()
        .catch((error) => (failure = error))
        .finally(() => {
          over = true;
          tell();
        });
      await first;
      const active = (await reader.running()) !== null;
      while (!active && !over) await change();
      if (failure) throw failure;
      const all = turns(reader.messages);
      const whole = active && all.at(-1)?.role === "assistant" ? all.slice(0, -1) : all;
      return { ...ExportedMessageRepository.fromArray(whole), unstable_resume: active };
    },
    async *resume() {
      for (let last = false; !last;) {
        last = over;
        const answer = turns(reader.messages).at(-1);
        if (answer?.role === "assistant") yield { content: answer.content };
        if (!last) await change();
      }
    },
    append: async () => {}, // the host keeps what is said
  };
}
