// A thread's events as an AG-UI client may apply them: one run, or the past and what is active, over any cuts.
//
// Knows runs and their ends; does not know a client. A run whose process died is closed here before the run that goes on
// from it, so that both read as one stream.
import type { AguiEvent } from "../fold/events.js";
import {
  answered,
  ask,
  at,
  type Door,
  insist,
  line,
  passing,
  type Portion,
  portionsOf,
  Refused,
  rest,
  streamAt,
} from "./line.js";
import { OpenLines } from "./open_lines.js";

const IDLE = 5000; // milliseconds of silence after which a run is looked up: its process may have died

export interface RunRow {
  run_id: string;
  parent: string | null;
  edge: string;
  status: "in_progress" | "completed" | "failed" | "interrupted" | "cancelled" | "truncated";
  first_seq: number;
  last_seq: number;
  terminal: string | null;
}

/** What a run is asked with. */
export interface Asked {
  threadId: string;
  runId: string;
}

export class ThreadStream {
  /** The position in the thread's log behind the last event, `epoch:seq`; null where nothing was read. */
  place: string | null = null;
  /** The run that is active as far as was read. */
  run: string | null = null;

  constructor(
    private readonly door: Door,
    readonly thread: string,
  ) {}

  /** One run: asked for with `post`, or found in the log if the answer was lost; to its end, or that of its successor. */
  async *ask(asked: Asked, post: () => Promise<Response>, signal: AbortSignal): AsyncGenerator<AguiEvent> {
    const response = await this.begin(asked.runId, post, signal);
    yield* this.through(this.both(asked.runId, response, signal), signal);
  }

  /** The past in a few events, then the run that is active, to its end. */
  async *join(signal: AbortSignal): AsyncGenerator<AguiEvent> {
    const url = streamAt(this.door, this.thread, "join");
    const portions = line(this.door, url, signal);
    try {
      const { value: past, done } = await portions.next();
      if (done) return;
      const lines = new OpenLines();
      for (const event of withoutOldError(past.events)) {
        lines.feed(event);
        yield event;
      }
      this.at(past.id);
      this.run = lines.run?.runId ?? null;
      if (this.run !== null) yield* this.through(portions, signal, lines);
    } finally {
      await portions.return(undefined);
    }
  }

  /** The next run that anything starts in the thread, once it starts, to its end. */
  async *next(signal: AbortSignal): AsyncGenerator<AguiEvent> {
    yield* this.through(this.events(signal), signal);
  }

  /** The thread's runs, oldest first. */
  async runs(): Promise<RunRow[]> {
    return (await ask<{ runs: RunRow[] }>(this.door, at(this.door, "threads", this.thread, "runs"))).runs;
  }

  /** The run that is active now, if there is one. */
  async active(): Promise<RunRow | null> {
    const newest = (await this.runs()).at(-1);
    return newest?.status === "in_progress" ? newest : null;
  }

  private events(signal: AbortSignal): AsyncGenerator<Portion> {
    return line(this.door, streamAt(this.door, this.thread, "events"), signal, this.place);
  }

  /** The answer to the request for a run; null where the request arrived and its answer was lost. */
  private async begin(runId: string, post: () => Promise<Response>, signal: AbortSignal): Promise<Response | null> {
    let again = false;
    return insist(this.door, signal, async () => {
      if (again && (await this.find(runId))) return null;
      try {
        again = true;
        return await answered(await post());
      } catch (error) {
        // Asked a second time, the first request may have arrived after it was looked for.
        if (again && error instanceof Refused && error.status === 409 && (await this.find(runId))) return null;
        throw error;
      }
    });
  }

  /** Stand before a run of the log, or at the log's end where it is not in there yet; whether it is. */
  private async find(runId: string): Promise<boolean> {
    const runs = await this.runs();
    const found = runs.find((run) => run.run_id === runId);
    this.place = `:${found === undefined ? (runs.at(-1)?.last_seq ?? 0) : found.first_seq - 1}`;
    return found !== undefined;
  }

  /** The run's own stream, then the log where that broke off. */
  private async *both(runId: string, response: Response | null, signal: AbortSignal): AsyncGenerator<Portion> {
    let begun = false;
    try {
      for await (const portion of response === null ? [] : portionsOf(response, this.door.silence)) {
        begun = true;
        yield portion;
      }
    } catch (error) {
      if (signal.aborted || !passing(error)) throw error;
    }
    if (!begun && response !== null) await insist(this.door, signal, () => this.find(runId));
    for await (const portion of this.events(signal)) {
      // A run that waits for a worker may begin after others.
      begun ||= portion.events.some(({ type, ...event }) => type === "RUN_STARTED" && event["runId"] === runId);
      if (begun) yield portion;
    }
  }

  /** Portions until the run ends. One that was cut short is closed where the run that goes on from it starts. */
  private async *through(
    portions: AsyncGenerator<Portion>,
    signal: AbortSignal,
    lines: OpenLines = new OpenLines(),
  ): AsyncGenerator<AguiEvent> {
    const incoming = patient(portions, () => this.cutShort(), this.door.patience, signal);
    for await (const { events, id } of incoming) {
      for (const event of events) {
        if (event.type === "RUN_STARTED") yield* lines.close();
        lines.feed(event);
        this.run = lines.run?.runId ?? null;
        yield event;
      }
      this.at(id);
      if (lines.run === null && events.length > 0) return;
    }
    if (signal.aborted || lines.run === null) return;
    this.run = null;
    yield { type: "RUN_ERROR", message: "the run was cut short and is not resumed", code: "truncated" };
  }

  /** Whether the active run lost its process and nothing goes on from it. */
  private async cutShort(): Promise<boolean> {
    if (this.run === null) return false;
    const newest = (await this.runs()).at(-1);
    return newest?.run_id === this.run && newest.status === "truncated";
  }

  /** The place in the log: a joined thread's position also has where it was joined. */
  private at(id: string): void {
    this.place = id.replace(/:\d+\./, ":");
  }
}

/** The portions, until a run was found cut short for as long as the line is patient. */
async function* patient(
  portions: AsyncGenerator<Portion>,
  cutShort: () => Promise<boolean>,
  patience: number,
  signal: AbortSignal,
): AsyncGenerator<Portion> {
  let coming = portions.next();
  let since: number | null = null;
  try {
    for (;;) {
      const waited = new AbortController();
      const first = await Promise.race([coming, rest(IDLE, AbortSignal.any([signal, waited.signal]))]);
      waited.abort();
      if (first !== undefined) {
        if (first.done) return;
        since = null;
        yield first.value;
        coming = portions.next();
      } else if (signal.aborted) {
        return;
      } else if (await cutShort().catch(() => false)) {
        since ??= Date.now();
        if (Date.now() - since >= patience) return;
      } else {
        since = null;
      }
    }
  } finally {
    coming.catch(() => {});
    void portions.return(undefined).catch(() => {});
  }
}

/** The past, with a run that failed long ago ended like any other: a client would report its error as news. */
function withoutOldError(events: AguiEvent[]): AguiEvent[] {
  const last = events.at(-1);
  if (last?.type !== "RUN_ERROR") return events;
  const lines = new OpenLines();
  for (const event of events.slice(0, -1)) lines.feed(event);
  const ended = lines.close();
  const error = { message: last["message"], ...(last["code"] === undefined ? {} : { code: last["code"] }) };
  return [
    ...events.slice(0, -1),
    ...ended.map((event) => (event.type === "RUN_FINISHED" ? { ...event, metadata: { runcast: { error } } } : event)),
  ];
}
