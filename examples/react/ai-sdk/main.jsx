// useChat over a runcast host. Look at: a reload in the middle of an answer, Stop, and an approval.
import { useState } from "react";
import { createRoot } from "react-dom/client";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } from "ai";

const address = new URLSearchParams(location.search);
const host = address.get("host") ?? "http://127.0.0.1:8000";
const thread = address.get("thread") ?? "ai-sdk";

function Part({ part, answer }) {
  if (part.type === "text") return <p className="text">{part.text}</p>;
  if (part.type !== "dynamic-tool") return null;
  return (
    <p className="tool">
      {part.toolName} <code>{JSON.stringify(part.input)}</code> {part.state}
      {part.state === "approval-requested" && (
        <>
          <button onClick={() => answer({ id: part.approval.id, approved: true })}>Approve</button>
          <button onClick={() => answer({ id: part.approval.id, approved: false })}>Reject</button>
        </>
      )}
    </p>
  );
}

function Conversation({ first }) {
  const [text, setText] = useState("");
  const { messages, sendMessage, status, error, addToolApprovalResponse } = useChat({
    id: thread,
    messages: first,
    resume: true,
    transport: new DefaultChatTransport({ api: `${host}/chat/writer` }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const stop = () =>
    fetch(`${host}/chat/${thread}/stop`, { method: "POST", headers: { "content-type": "application/json" } });
  const send = (event) => {
    event.preventDefault();
    void sendMessage({ text });
    setText("");
  };
  return (
    <>
      {messages.map((message) => (
        <section key={message.id} className={message.role}>
          {message.parts.map((part, n) => (
            <Part key={n} part={part} answer={addToolApprovalResponse} />
          ))}
        </section>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input value={text} onChange={(event) => setText(event.target.value)} aria-label="Message" />
        <button disabled={!text}>Send</button>
        <button type="button" onClick={stop} disabled={status === "ready"}>
          Stop
        </button>
        <output>{status}</output>
      </form>
    </>
  );
}

const { messages } = await (await fetch(`${host}/chat/${thread}/messages`)).json();
createRoot(document.getElementById("root")).render(<Conversation first={messages} />);
