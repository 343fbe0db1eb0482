// An HttpAgent that comes back: after a cut line it goes on where it was, after a reload it joins what is active.
//
//   const agent = new RuncastAgent({ url: "https://host/agents/helper", threadId: "thread-7" });
//   await agent.connectAgent();                 // the past, and the run that is active
//   await agent.runAgent();                     // as every HttpAgent, over any cuts
//   const leave = agent.follow();               // and runs that anything else starts in the thread
import {
  type AgentSubscriber,
  type BaseEvent,
  HttpAgent,
  type HttpAgentConfig,
  type RunAgentInput,
} from "@ag-ui/client";
import { Observable } from "rxjs";
import type { AguiEvent } from "../fold/events.js";
import { ask, at, type Door, mount, Refused, rest } from "./line.js";
import { ThreadStream } from "./thread_stream.js";

export interface RuncastAgentConfig extends HttpAgentConfig {
  /** Where runcast is mounted, if that is not what stands before `agents/…` in the URL. */
  base?: string;
  /** Milliseconds without any answer after which a run fails; 60,000 unless given. */
  patience?: number;
  /** Milliseconds without a byte after which a connection counts as cut; 45,000 unless given. */
  silence?: number;
}

/** A thread, as the list of threads has it; times are milliseconds since the Unix epoch. */
export interface ThreadRow {
  thread_id: string;
  last_seq: number;
  created_at: number;
  updated_at: number;
  active: boolean;
}

type RunParameters = Parameters<HttpAgent["runAgent"]>[0];
type RunResult = Awaited<ReturnType<HttpAgent["runAgent"]>>;

/** What an agent holds besides an HttpAgent's own; one object, so that a clone starts with another. */
class Held {
  stream: ThreadStream | null = null;
  asked: string | null = null; // the run that was asked for last
  upcoming: AsyncGenerator<AguiEvent> | null = null; // the run that the next connection shows
  following: AbortController | null = null;
  waiting = new AbortController(); // for a run that something else starts
  own: Promise<unknown> = Promise.resolve(); // what the application does by itself

  constructor(readonly config: Pick<RuncastAgentConfig, "base" | "patience" | "silence">) {}
}

export class RuncastAgent extends HttpAgent {
  private held: Held;

  constructor(config: RuncastAgentConfig) {
    super(config);
    this.held = new Held(config);
  }

  /** Run the agent; the run goes on by itself, and is read to its end over any number of connections. */
  override runAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunResult> {
    return this.alone(() => super.runAgent(parameters, subscriber));
  }

  /** Show the thread as it is, and the run that is active in it, to its end. */
  override connectAgent(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunResult> {
    return this.alone(() => this.show(parameters, subscriber));
  }

  /** The events of a new run. */
  override run(input: RunAgentInput): Observable<BaseEvent> {
    const stream = this.stream();
    this.held.asked = input.runId;
    return this.observed((signal) =>
      stream.ask(input, () => this.fetch(this.url, { ...this.requestInit(input), signal }), signal),
    );
  }

  /** The events that `connectAgent` shows. */
  protected override connect(_input: RunAgentInput): Observable<BaseEvent> {
    const stream = this.stream();
    const { upcoming } = this.held;
    this.held.upcoming = null;
    return this.observed((signal) => upcoming ?? stream.join(signal));
  }

  /** Show the thread, and every run that anything starts in it, until the returned function is called. */
  follow(): () => void {
    this.held.following?.abort();
    const leaving = new AbortController();
    this.held.following = leaving;
    void this.keepUp(leaving.signal);
    return () => leaving.abort();
  }

  /**
   * Stop the thread's run on whichever node: at its framework's next step, or at once when `hard`. Its end arrives as
   * an event. Gives `false` where no run is active.
   */
  async stop({ hard = false }: { hard?: boolean } = {}): Promise<boolean> {
    const stream = this.stream();
    const run = stream.run ?? (await stream.active())?.run_id ?? this.held.asked;
    if (run === null) return false;
    try {
      await ask(this.door(), at(this.door(), "runs", run, "stop"), { hard });
      return true;
    } catch (error) {
      if (error instanceof Refused && (error.status === 404 || error.status === 409)) return false; // unknown, or over
      throw error;
    }
  }

  /** Stop the run at once, as its user asks; where the server cannot be asked, leave it. */
  override abortRun(): void {
    const leave = (): void => super.abortRun();
    this.stop({ hard: true }).then((stopped) => stopped || leave(), leave);
  }

  /** The id of the run that is active in the thread, on whichever node; null where there is none. */
  async running(): Promise<string | null> {
    return (await this.stream().active())?.run_id ?? null;
  }

  /** The threads that the user may see. */
  async threads(): Promise<ThreadRow[]> {
    const rows: ThreadRow[] = [];
    const url = new URL(at(this.door(), "threads"));
    for (let after: string | null = ""; after !== null;) {
      url.search = new URLSearchParams({ limit: "1000", after }).toString();
      const page: { threads: ThreadRow[]; next: string | null } = await ask(this.door(), url.href);
      rows.push(...page.threads);
      after = page.next;
    }
    return rows;
  }

  /** Start a run with one more message behind an earlier run, and show it: what came after that run is left out. */
  async branch(fromRun: string, message: string, subscriber?: AgentSubscriber): Promise<RunResult> {
    const [, agent] = /\/agents\/([^/]+)\/?$/.exec(new URL(this.url, this.door().base).pathname) ?? [];
    const named = agent === undefined ? {} : { agent: decodeURIComponent(agent) };
    return this.alone(async () => {
      await ask(this.door(), at(this.door(), "threads", this.threadId, "branch"), {
        message,
        from_run: fromRun,
        ...named,
      });
      this.forget();
      return this.show(undefined, subscriber);
    });
  }

  /** Another agent of the same thread, with the same messages; it follows nothing yet. */
  override clone(): RuncastAgent {
    const copy = super.clone() as RuncastAgent;
    copy.held = new Held(this.held.config);
    return copy;
  }

  // ----------------------------------------------------------------- parts

  /** Connect. The client would ask for answers to open questions first, but another client may have given them. */
  private show(parameters?: RunParameters, subscriber?: AgentSubscriber): Promise<RunResult> {
    if (this.abortController.signal.aborted) this.abortController = new AbortController();
    this.pendingInterrupts = [];
    return super.connectAgent(parameters, subscriber);
  }

  /** Empty the agent, so that the thread as it is now can be joined. */
  private forget(): void {
    this.held.stream = null;
    this.setMessages([]);
    this.setState({});
  }

  private stream(): ThreadStream {
    if (this.held.stream?.thread !== this.threadId) this.held.stream = new ThreadStream(this.door(), this.threadId);
    return this.held.stream;
  }

  private door(): Door {
    const { base, patience = 60_000, silence = 45_000 } = this.held.config;
    return {
      base: mount(this.url, base),
      interrupts: new URL(this.url, globalThis.location?.href).searchParams.get("interrupts"),
      headers: () => this.headers,
      fetch: (url, request) => this.fetch(url, request),
      patience,
      silence,
    };
  }

  /** Do what the application asks for, while nothing else of this agent waits for runs. */
  private alone<T>(work: () => Promise<T>): Promise<T> {
    this.held.waiting.abort();
    const working = work();
    this.held.own = Promise.allSettled([this.held.own, working]);
    return working;
  }

  /** Wait until the application has nothing under way in this agent. */
  private async quiet(): Promise<void> {
    for (let own: unknown = null; own !== this.held.own;) {
      own = this.held.own;
      await own;
    }
  }

  private async keepUp(leaving: AbortSignal): Promise<void> {
    let pause = 0;
    while (!leaving.aborted) {
      await this.quiet();
      this.held.waiting = new AbortController();
      const signal = AbortSignal.any([leaving, this.held.waiting.signal]);
      try {
        const stream = this.stream();
        if (stream.place !== null) {
          const events = stream.next(signal);
          const first = await events.next();
          if (first.done) continue;
          this.held.upcoming = behind(first.value, events);
        }
        await this.show();
        pause = 0;
      } catch (error) {
        if (error instanceof Refused && error.status === 410) this.forget();
        else if (error instanceof Refused) return;
        await rest((pause = Math.min(3000, pause * 2 + 100)), leaving);
      }
    }
  }

  /** A generator's events as an Observable; leaving it ends the generator. */
  private observed(events: (signal: AbortSignal) => AsyncGenerator<AguiEvent>): Observable<BaseEvent> {
    return new Observable((subscriber) => {
      const leaving = new AbortController();
      const outside = this.abortController.signal;
      let over = false;
      const read = async (): Promise<void> => {
        for await (const event of events(AbortSignal.any([leaving.signal, outside])))
          subscriber.next(event as BaseEvent);
        over = true;
        // As an HttpAgent ends a run that it leaves.
        if (outside.aborted) subscriber.next(LEFT as unknown as BaseEvent);
        subscriber.complete();
      };
      read().catch((error: unknown) => subscriber.error(error));
      return () => {
        leaving.abort();
        if (!over) this.held.stream = null; // what is left out has to be joined again
      };
    });
  }
}

const LEFT = { type: "RUN_ERROR", message: "the run was left", code: "abort" };

async function* behind(first: AguiEvent, rest: AsyncGenerator<AguiEvent>): AsyncGenerator<AguiEvent> {
  yield first;
  yield* rest;
}
