// The waterfall: runs, steps, tools, subagents and waits for people on one scale of time.
import { useSignal } from "@preact/signals";
import { now } from "../parts/Time.js";
import { useDesk } from "../state/context.js";
import { costOf, money } from "../state/cost.js";
import type { Session } from "../state/session.js";
import { duration, number, stateOf } from "../state/words.js";
import { type Span, spansOf } from "./spans.js";

const MOST = 400; // spans that are drawn at once

export function Timeline({ session }: { session: Session }) {
  const zoom = useSignal(1);
  const run = useSignal(""); // "": all of them
  const view = session.shown.value?.view;
  if (!view || view.items.length === 0) return <p class="quiet">Nothing has run yet.</p>;
  const at = session.working.value ? now.value : Date.now();
  const rows = session.rows.value;
  const items = run.value === "" ? rows : rows.filter((item) => item.run === run.value);
  const spans = spansOf(items, view.runs, at, session.stalled.value);
  const shown = spans.slice(-MOST);
  const start = Math.min(...shown.map((span) => span.start));
  const length = Math.max(1, Math.max(...shown.map((span) => span.end)) - start);
  const parts = shown.filter(({ kind }) => kind !== "run" && kind !== "wait").length;
  const runs = Object.keys(view.runs);
  const { prompt, completion, total } = view.usage;
  return (
    <>
      <div class="bar">
        <label for="only-run" class="hidden">
          Run
        </label>
        <select id="only-run" value={run.value} onChange={(event) => (run.value = event.currentTarget.value)}>
          <option value="">All runs ({runs.length})</option>
          {runs.map((id) => (
            <option key={id} value={id}>
              Run {id.slice(0, 8)}
            </option>
          ))}
        </select>
        <label class="zoom">
          Zoom{" "}
          <input
            type="range"
            min="1"
            max="20"
            step="1"
            aria-label="Zoom"
            value={zoom.value}
            onInput={(event) => (zoom.value = Number(event.currentTarget.value))}
          />
        </label>
      </div>
      <p class="quiet">
        {duration(length)} in all, {parts === 1 ? "1 step or call" : `${parts} steps and calls`}.
        {spans.length > MOST && ` The newest ${MOST} of ${spans.length} are shown.`}
      </p>
      <p id="usage-text" class="quiet">
        {total
          ? `${number(total)} tokens: ${number(prompt)} in, ${number(completion)} out`
          : "No tokens were counted yet."}
        <Costs session={session} run={run.value} />
      </p>
      <div class="waterfall" tabIndex={0} role="region" aria-label="Timeline of runs, steps and calls">
        <ol style={{ width: `${zoom.value * 100}%` }}>
          {shown.map((span, index) => (
            <Bar
              key={`${span.key} ${span.kind} ${index}`}
              span={span}
              start={start}
              length={length}
              session={session}
            />
          ))}
        </ol>
      </div>
    </>
  );
}

/** What the runs that are shown cost, where the host has prices. */
function Costs({ session, run }: { session: Session; run: string }) {
  const { options } = useDesk();
  const cost = costOf(
    session.runs.value.filter(({ run_id }) => run === "" || run_id === run),
    options.value,
  );
  if (cost === null) return null;
  return (
    <span id="cost">
      {", "}
      {money(cost.amount, options.value.currency)}
      {cost.unpriced.length > 0 && ` without ${cost.unpriced.join(", ")}, which has no price here`}
    </span>
  );
}

function Bar({ span, start, length, session }: { span: Span; start: number; length: number; session: Session }) {
  const { label, tone } = stateOf(span.state);
  const left = (100 * (span.start - start)) / length;
  const width = Math.max(0.4, (100 * (span.end - span.start)) / length);
  const took = duration(span.end - span.start);
  const more = `${span.state === null ? "" : `, ${label}`}${span.tokens ? `, ${number(span.tokens)} tokens` : ""}`;
  return (
    <li>
      <button
        type="button"
        data-kind={span.kind}
        title={`${span.name}, ${took}${more}`}
        onClick={() => session.reveal(span.key)}
      >
        <span class="bar-name" style={{ paddingInlineStart: `${span.depth * 0.6}rem` }}>
          {span.name}
          <small>
            {took}
            <span class="hidden">{more}</span>
          </small>
        </span>
        <span class="bar-track" aria-hidden="true">
          <i
            data-tone={span.kind === "wait" ? "warn" : tone}
            style={{
              marginInlineStart: `${Math.min(left, 99)}%`,
              width: `${Math.min(width, 100 - Math.min(left, 99))}%`,
            }}
          />
        </span>
      </button>
    </li>
  );
}
