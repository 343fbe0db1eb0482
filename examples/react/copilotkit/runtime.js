// CopilotKit's runtime, whose threads are runcast's. Look at: kill it in the middle of an answer, and start it again.
import { createServer } from "node:http";
import { CopilotRuntime } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";
import { RuncastAgent, RuncastRunner } from "runcast/agui";

const { RUNCAST_URL: url = "http://127.0.0.1:8000", PORT: port = "4000" } = process.env;
const runtime = new CopilotRuntime({
  agents: { writer: new RuncastAgent({ url: `${url}/agents/writer` }) },
  runner: new RuncastRunner({ url }),
});

createServer(createCopilotNodeListener({ runtime, basePath: "/api/copilotkit", cors: true })).listen(port, "127.0.0.1");
