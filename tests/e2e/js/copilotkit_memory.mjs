// CopilotKit's runtime as it comes: its runner keeps threads in memory, and an HttpAgent does not come back.
import { createServer } from "node:http";
import { HttpAgent } from "@ag-ui/client";
import { CopilotRuntime } from "@copilotkit/runtime/v2";
import { createCopilotNodeListener } from "@copilotkit/runtime/v2/node";

const { RUNCAST_URL: url, PORT: port } = process.env;
const runtime = new CopilotRuntime({ agents: { writer: new HttpAgent({ url: `${url}/agents/writer` }) } });
createServer(createCopilotNodeListener({ runtime, basePath: "/api/copilotkit", cors: true })).listen(port, "127.0.0.1");
