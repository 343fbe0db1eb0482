// assistant-ui over a runcast host. Look at: a reload in the middle of an answer, and Stop.
import { createRoot } from "react-dom/client";
import { AssistantRuntimeProvider, ComposerPrimitive, MessagePrimitive, ThreadPrimitive } from "@assistant-ui/react";
import { useAgUiRuntime } from "@assistant-ui/react-ag-ui";
import { RuncastAgent } from "runcast/agui";
import { historyOf } from "./history.js";

const address = new URLSearchParams(location.search);
const host = address.get("host") ?? "http://127.0.0.1:8000";
const threadId = address.get("thread") ?? "assistant-ui";
const agent = new RuncastAgent({ url: `${host}/agents/writer`, threadId });
const adapters = { history: historyOf(agent) };

const Text = ({ text }) => <p className="text">{text}</p>;
const Tool = ({ toolName, argsText, result }) => (
  <p className="tool">
    {toolName} <code>{argsText}</code> {result === undefined ? "called" : String(result)}
  </p>
);

const Message = ({ role }) => (
  <MessagePrimitive.Root className={role}>
    <MessagePrimitive.Parts components={{ Text, tools: { Fallback: Tool } }} />
  </MessagePrimitive.Root>
);
const components = {
  UserMessage: () => <Message role="user" />,
  AssistantMessage: () => <Message role="assistant" />,
};

function Conversation() {
  const runtime = useAgUiRuntime({ agent, adapters });
  return (
    <AssistantRuntimeProvider runtime={runtime}>
      <ThreadPrimitive.Root>
        <ThreadPrimitive.Messages components={components} />
        <ComposerPrimitive.Root>
          <ComposerPrimitive.Input aria-label="Message" />
          <ComposerPrimitive.Send>Send</ComposerPrimitive.Send>
          <ComposerPrimitive.Cancel>Stop</ComposerPrimitive.Cancel>
        </ComposerPrimitive.Root>
      </ThreadPrimitive.Root>
    </AssistantRuntimeProvider>
  );
}

createRoot(document.getElementById("root")).render(<Conversation />);
