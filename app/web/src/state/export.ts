// What a person takes away: the events as JSON lines, the conversation as Markdown, the snapshot.
import type { Message } from "../fold/events.js";
import type { Session } from "./session.js";
import { plain } from "./words.js";

export type Format = "jsonl" | "md" | "json";

/** Save the thread as a file. */
export async function download(session: Session, format: Format): Promise<void> {
  const { thread, api, history } = session;
  if (thread === null || history === null) return;
  let text: string;
  if (format === "json") text = JSON.stringify(await api.snapshot(thread), null, 2);
  else {
    await history.refresh();
    text =
      format === "jsonl"
        ? history.entries.map((entry) => `${JSON.stringify(entry)}\n`).join("")
        : asMarkdown(thread, history.at(history.head).messages);
  }
  save(`${thread.replace(/[^-\w.]+/g, "_")}.${format}`, text);
}

export function save(name: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const NAMES: Record<string, string> = {
  user: "You",
  assistant: "Agent",
  tool: "Tool result",
  reasoning: "Thought",
  activity: "Activity",
};

/** A conversation as a document. */
export function asMarkdown(title: string, messages: Message[]): string {
  const parts = messages.map((message) => {
    const calls = (message.toolCalls ?? []).map(
      (call) => `\n\nCalls \`${call.function.name}\`:\n\n${fenced(call.function.arguments, "json")}`,
    );
    const text = plain(message.content);
    const body = message.role === "tool" ? fenced(text, "") : text;
    return `## ${NAMES[message.role] ?? message.role}\n\n${body}${calls.join("")}`;
  });
  return `# ${title}\n\n${parts.join("\n\n")}\n`;
}

function fenced(text: string, language: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text}\n${fence}`;
}
