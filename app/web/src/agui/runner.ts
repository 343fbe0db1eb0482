// CopilotKit's runtime over runcast: its threads are runcast's, so they outlive the runtime's process.
//
//   const agents = { helper: new RuncastAgent({ url: "http://runcast/agents/helper" }) };
//   const runtime = new CopilotRuntime({ agents, runner: new RuncastRunner({ url: "http://runcast/" }) });
//
// Nothing of a thread is kept here: several runtimes share it, and a browser that joins in the middle gets the past and
// the rest, also of runs that something else started. Middleware of the agents is used as it is.
import type { AbstractAgent, BaseEvent, HttpAgent, RunAgentInput } from "@ag-ui/client";
import { Observable } from "rxjs";
import { RuncastAgent, type RuncastAgentConfig } from "./agent.js";
import { readable } from "./readable.js";

/** As the agents' own settings; `url` is where runcast is mounted. */
export type RuncastRunnerConfig = Omit<RuncastAgentConfig, "agentId" | "threadId" | "initialMessages" | "initialState">;

interface Run {
  threadId: string;
  agent: AbstractAgent;
  input: RunAgentInput;
}

interface Connect {
  threadId: string;
  agentId?: string;
  headers?: Record<string, string>;
}

/** An `AgentRunner` of @copilotkit/runtime. */
export class RuncastRunner {
  constructor(private readonly config: RuncastRunnerConfig) {}

  /** Run the agent that the runtime made for this request; its run goes on when the browser leaves. */
  run({ threadId, agent, input }: Run): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      const line = this.lineOf(agent, threadId);
      // The middleware of the agent stays; what reaches runcast in the end comes back by itself.
      if (line !== agent) agent.run = (given) => line.run(given);
      let failed = false;
      const onEvent = ({ event }: { event: BaseEvent }): void => {
        failed ||= event.type === "RUN_ERROR";
        subscriber.next(readable(event));
      };
      agent.threadId = threadId;
      const { runId, tools, context, forwardedProps, resume } = input;
      const asked = { runId, tools, context, forwardedProps, ...(resume === undefined ? {} : { resume }) };
      agent
        .runAgent(asked, { onEvent })
        .catch((error: unknown) => {
          if (!failed) subscriber.next(refusal(error));
        })
        .finally(() => subscriber.complete());
      return () => void agent.detachActiveRun().catch(() => {});
    });
  }

  /** The thread as it is, and the run that is active in it, to its end. */
  connect({ threadId, agentId, headers }: Connect): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      const agent = this.agent(threadId, agentId, headers);
      const onEvent = ({ event }: { event: BaseEvent }): void => subscriber.next(readable(event));
      agent
        .connectAgent(undefined, { onEvent })
        .catch((error: unknown) => subscriber.next(refusal(error)))
        .finally(() => subscriber.complete());
      return () => void agent.detachActiveRun().catch(() => {});
    });
  }

  /** Whether a run is active in the thread, on whichever node. */
  async isRunning({ threadId }: { threadId: string }): Promise<boolean> {
    return (await this.agent(threadId).running()) !== null;
  }

  /** Stop the thread's run at once; with `runId`, that run and no later one. Gives `false` where it is not active. */
  async stop({ threadId, runId }: { threadId: string; runId?: string }): Promise<boolean> {
    const agent = this.agent(threadId);
    if (runId !== undefined && (await agent.running()) !== runId) return false;
    return agent.stop({ hard: true });
  }

  /** The agent itself where it comes back, else one that does, for the same place with the same headers. */
  private lineOf(agent: AbstractAgent, threadId: string): RuncastAgent {
    if (agent instanceof RuncastAgent) return agent;
    const { url, headers } = agent as HttpAgent;
    const there = url === undefined ? {} : { url, base: this.config.base ?? this.config.url };
    return new RuncastAgent({ ...this.config, ...there, headers: { ...this.config.headers, ...headers }, threadId });
  }

  private agent(threadId: string, agentId?: string, headers?: Record<string, string>): RuncastAgent {
    const given = { ...this.config, headers: { ...this.config.headers, ...headers }, threadId };
    return new RuncastAgent(agentId === undefined ? given : { ...given, agentId });
  }
}

/** A failure as the end of a run: a stream that breaks off would take the runtime's process along. */
function refusal(error: unknown): BaseEvent {
  const message = error instanceof Error ? error.message : String(error);
  return { type: "RUN_ERROR", message, code: "runcast_unreachable" } as unknown as BaseEvent;
}
