// CopilotKit's own chat. Look at: a reload in the middle of an answer, a second window, and Stop.
import { useEffect } from "react";
import { createRoot } from "react-dom/client";
import { CopilotChat, CopilotKitProvider, useAgent, useCopilotKit } from "@copilotkit/react-core/v2";
import { RuncastAgent } from "runcast/agui";
import "@copilotkit/react-core/v2/styles.css";

const address = new URLSearchParams(location.search);
const host = address.get("host"); // given, there is no runtime: the page's agent speaks to runcast itself
const door = host
  ? { selfManagedAgents: { writer: new RuncastAgent({ url: `${host}/agents/writer` }) } }
  : { runtimeUrl: address.get("runtime") ?? "http://127.0.0.1:4000/api/copilotkit" };

/** Connects again when the line to the runtime breaks: CopilotKit waits for a reload. */
function ComeBack() {
  const { agent } = useAgent({ agentId: "writer" });
  const { copilotkit } = useCopilotKit();
  useEffect(() => {
    const onError = ({ code }) => {
      if (code === "agent_run_failed" || code === "agent_connect_failed")
        setTimeout(() => void copilotkit.connectAgent({ agent }), 1000);
    };
    const { unsubscribe } = copilotkit.subscribe({ onError });
    return unsubscribe;
  }, [agent, copilotkit]);
}

createRoot(document.getElementById("root")).render(
  <CopilotKitProvider {...door} enableInspector={false}>
    <CopilotChat agentId="writer" threadId={address.get("thread") ?? "copilotkit"} />
    <ComeBack />
  </CopilotKitProvider>,
);
