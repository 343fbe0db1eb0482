// AG-UI clients that come back, for npm: an HttpAgent, and the runner of CopilotKit's runtime.
export { RuncastAgent, type RuncastAgentConfig, type ThreadRow } from "./agent.js";
export { Refused } from "./line.js";
export { RuncastRunner, type RuncastRunnerConfig } from "./runner.js";
