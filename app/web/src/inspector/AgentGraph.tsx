// The agent's own graph, with the nodes lit that are at work.
import { useMemo } from "preact/hooks";
import type { Item } from "../client/runcast.js";
import type { Drawing } from "../state/api.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";
import { stateOf } from "../state/words.js";
import { type Box, HEIGHT, layout } from "./layout.js";

/** What each node of the graph was last seen doing in the newest run: by the names of steps, subagents and calls. */
export function statesOf(rows: readonly Item[], run: string | null): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const { kind, name, state, run: own } of rows as readonly (Item & { name?: string })[])
    if (own === run && name !== undefined && state !== undefined && ["step", "subagent", "tool"].includes(kind))
      found.set(name, state);
  return found;
}

export function Graph({ session }: { session: Session }) {
  const desk = useDesk();
  const drawings = desk.drawings.value;
  const name = desk.agentRow?.name ?? [...drawings.keys()][0] ?? "";
  const drawing = drawings.get(name);
  if (drawing === undefined) return <p class="quiet">This agent cannot draw itself.</p>;
  return <Drawn drawing={drawing} name={name} session={session} />;
}

function Drawn({ drawing, name, session }: { drawing: Drawing; name: string; session: Session }) {
  const { boxes, lines, width, height } = useMemo(() => layout(drawing), [drawing]);
  const states = statesOf(session.rows.value, session.shown.value?.view.run ?? null);
  const busy = boxes.filter((box) => states.get(box.name) === "running").map((box) => box.name);
  return (
    <>
      <h2>{name}</h2>
      <p class="quiet" role="status">
        {busy.length > 0 ? `At work: ${busy.join(", ")}.` : "Nothing is at work."}
      </p>
      <div class="drawing" tabIndex={0} role="region" aria-label={`Graph of ${name}`}>
        <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={told(drawing)}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0L8 4L0 8z" />
            </marker>
          </defs>
          {lines.map(({ path, label, conditional, x, y }, at) => (
            <g key={at}>
              <path class="edge" d={path} data-conditional={conditional} marker-end="url(#arrow)" />
              {label && (
                <text class="edge-label" x={x} y={y}>
                  {label}
                </text>
              )}
            </g>
          ))}
          {boxes.map((box) => (
            <Node key={box.id} box={box} state={states.get(box.name)} />
          ))}
        </svg>
      </div>
    </>
  );
}

function Node({ box, state }: { box: Box; state: string | undefined }) {
  const { label, tone } = stateOf(state);
  return (
    <g class="node" data-node={box.name} data-kind={box.kind} data-state={state} data-tone={state ? tone : undefined}>
      <title>{state ? `${box.name}: ${label}` : box.name}</title>
      <rect x={box.x - box.width / 2} y={box.y} width={box.width} height={HEIGHT} rx={box.kind === "node" ? 8 : 15} />
      <text x={box.x} y={box.y + HEIGHT / 2}>
        {box.name.length > 28 ? `${box.name.slice(0, 27)}…` : box.name}
      </text>
    </g>
  );
}

/** The graph in words, for who does not see it. */
function told({ nodes, edges }: Drawing): string {
  const names = new Map(nodes.map(({ id, name }) => [id, name]));
  return (
    edges.map(({ source, target }) => `${names.get(source)} leads to ${names.get(target)}`).join("; ") || "One node"
  );
}
