// The runs of a thread as a graph of branches, what they used, and what the thread weighs.
import { State } from "../parts/State.js";
import { Clock } from "../parts/Time.js";
import { useDesk } from "../state/context.js";
import { costOf, money } from "../state/cost.js";
import { download, type Format } from "../state/export.js";
import type { Session } from "../state/session.js";
import { bytes, edgeOf, number, short } from "../state/words.js";
import { type Placed, placed } from "./graph.js";

const ROW = 58; // pixels
const COLUMN = 16;

export function Runs({ session }: { session: Session }) {
  const desk = useDesk();
  const runs = session.runs.value;
  const size = session.size.value;
  const places = placed(runs);
  const columns = Math.max(0, ...places.map(({ column }) => column)) + 1;
  const usage = session.shown.value?.view.usage;
  const share = (part: number): string => `${(100 * part) / Math.max(1, usage?.total ?? 1)}%`;
  return (
    <>
      <h2>Runs</h2>
      {runs.length === 0 && <p class="quiet">Nothing has run yet.</p>}
      <div class="graph" style={{ paddingInlineStart: `${Math.min(columns, 6) * COLUMN + 8}px` }}>
        <Edges places={places} columns={columns} />
        <ul id="runs">
          {places.map((place) => (
            <RunOf key={place.run.run_id} place={place} session={session} branching={desk.agents.value.length > 0} />
          ))}
        </ul>
      </div>
      <h2>Tokens</h2>
      <div id="usage" class="usage" role="img" aria-label={usage?.total ? `${usage.total} tokens` : "no tokens yet"}>
        <i style={{ width: usage?.total ? share(usage.prompt) : "0" }} />
        <i style={{ width: usage?.total ? share(usage.completion) : "0" }} />
      </div>
      <p class="quiet">
        {usage?.total
          ? `${number(usage.total)} tokens: ${number(usage.prompt)} in, ${number(usage.completion)} out`
          : "none yet"}
      </p>
      <h2>Size</h2>
      <dl id="size" class="size">
        <dt>events</dt>
        <dd>{size === null ? "–" : number(size.events)}</dd>
        <dt>as they came</dt>
        <dd>{bytes(size?.bytes)}</dd>
        <dt>compacted</dt>
        <dd>{bytes(size?.compacted)}</dd>
        <dt>snapshot</dt>
        <dd>{bytes(size?.snapshot)}</dd>
      </dl>
      <h2>Download</h2>
      <div class="choices">
        {FORMATS.map(([format, label]) => (
          <button
            key={format}
            type="button"
            class="plain"
            disabled={session.thread === null}
            onClick={() =>
              void download(session, format).catch((error: Error) => (session.trouble.value = error.message))
            }
          >
            {label}
          </button>
        ))}
      </div>
    </>
  );
}

const FORMATS: [Format, string][] = [
  ["jsonl", "Events (JSONL)"],
  ["md", "Markdown"],
  ["json", "Snapshot"],
];

function Edges({ places, columns }: { places: Placed[]; columns: number }) {
  const x = (column: number): number => 8 + Math.min(column, 5) * COLUMN;
  const y = (row: number): number => row * ROW + 16;
  return (
    <svg width={Math.min(columns, 6) * COLUMN + 8} height={places.length * ROW} aria-hidden="true">
      {places.map(({ run, parent, row, column }) =>
        parent === null ? null : (
          <path
            key={run.run_id}
            data-edge={run.edge}
            d={`M${x(parent.column)} ${y(parent.row)} ${parent.column === column ? "" : `C${x(parent.column)} ${y(parent.row) + ROW / 2} ${x(column)} ${y(parent.row) + ROW / 4} ${x(column)} ${y(parent.row) + ROW * 0.7}`} L${x(column)} ${y(row)}`}
          />
        ),
      )}
      {places.map(({ run, row, column }) => (
        <circle key={run.run_id} data-status={run.status} cx={x(column)} cy={y(row)} r="5" />
      ))}
    </svg>
  );
}

function RunOf({ place, session, branching }: { place: Placed; session: Session; branching: boolean }) {
  const { run, column } = place;
  const desk = useDesk();
  const cost = costOf([run], desk.options.value);
  const tokens = run.usage.reduce(
    (sum, each) => sum + (each.totalTokens ?? (each.inputTokens ?? 0) + (each.outputTokens ?? 0)),
    0,
  );
  return (
    <li data-column={column} style={{ height: `${ROW}px` }}>
      <button
        type="button"
        class="run-name"
        title={`${run.run_id} (${run.edge})`}
        onClick={() => session.reveal(`run ${run.run_id}`)}
      >
        <span class="mono">{short(run.run_id)}</span>
        {run.attempt > 1 && (
          <span class="badge" data-tone="warn">
            attempt {run.attempt}
          </span>
        )}
        <State state={run.status} />
      </button>
      <div class="run-more">
        <span>{run.parent === null ? "begins" : edgeOf(run.edge)}</span> <Clock at={run.started_at} />
        {tokens > 0 && <span>{number(tokens)} tokens</span>}
        {cost !== null && <span>{money(cost.amount, desk.options.value.currency)}</span>}
        {run.status !== "in_progress" && branching && (
          <button type="button" class="link branch" onClick={() => session.branch(run.run_id)}>
            Branch from here
          </button>
        )}
      </div>
    </li>
  );
}
