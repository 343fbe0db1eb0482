// Runs as a small graph: every run has a row, every branch a column.
import type { RunRow } from "../state/api.js";

export interface Placed {
  run: RunRow;
  row: number;
  column: number;
  parent: Placed | null;
}

/** Where each run is drawn: a run's first child stays in its column, every other one opens a column of its own. */
export function placed(runs: readonly RunRow[]): Placed[] {
  const places = new Map<string, Placed>();
  const taken = new Set<string>(); // runs that have a child in their column already
  let columns = 0;
  return runs.map((run, row) => {
    const parent = run.parent === null ? null : (places.get(run.parent) ?? null);
    let column: number;
    if (parent === null) column = places.size === 0 ? 0 : (columns += 1);
    else if (taken.has(parent.run.run_id)) column = columns += 1;
    else column = parent.column;
    if (parent !== null) taken.add(parent.run.run_id);
    const place = { run, row, column, parent };
    places.set(run.run_id, place);
    return place;
  });
}
