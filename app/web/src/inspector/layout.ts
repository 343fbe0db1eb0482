// Where the nodes of an agent's graph are drawn: in layers from the top, each below what leads to it.
import type { Drawing } from "../state/api.js";

export interface Box {
  id: string;
  name: string;
  kind: string;
  x: number; // of its middle
  y: number;
  width: number;
}

export interface Line {
  path: string;
  label: string | undefined;
  conditional: boolean;
  x: number; // of its label
  y: number;
}

export interface Layout {
  boxes: Box[];
  lines: Line[];
  width: number;
  height: number;
}

export const HEIGHT = 30; // of a node
const LAYER = 74;
const GAP = 18;
const LETTER = 7.2;

/** The layer of each node: the longest way to it, without the edges that lead back. */
function layersOf(ids: readonly string[], edges: Drawing["edges"]): Map<string, number> {
  const out = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const { source, target } of edges) if (out.has(target)) out.get(source)?.push(target);
  const order: string[] = [];
  const state = new Map<string, "open" | "done">();
  const back = new Set<string>();
  const visit = (id: string): void => {
    state.set(id, "open");
    for (const next of out.get(id) ?? []) {
      if (state.get(next) === "open") back.add(`${id}\n${next}`);
      else if (!state.has(next)) visit(next);
    }
    state.set(id, "done");
    order.unshift(id);
  };
  const led = new Set(edges.map(({ target }) => target));
  for (const id of [...ids.filter((each) => !led.has(each)), ...ids]) if (!state.has(id)) visit(id);
  const layers = new Map<string, number>(ids.map((id) => [id, 0]));
  for (const id of order)
    for (const next of out.get(id) ?? [])
      if (!back.has(`${id}\n${next}`)) layers.set(next, Math.max(layers.get(next) ?? 0, (layers.get(id) ?? 0) + 1));
  return layers;
}

/** A graph as boxes and lines. */
export function layout({ nodes, edges }: Drawing): Layout {
  const ids = nodes.map(({ id }) => id);
  const layers = layersOf(ids, edges);
  const rows: Drawing["nodes"][] = [];
  for (const node of nodes) (rows[layers.get(node.id) ?? 0] ??= []).push(node);
  const widthOf = (name: string): number => Math.max(56, Math.min(name.length, 28) * LETTER + 22);
  const total = (row: Drawing["nodes"]): number => row.reduce((sum, { name }) => sum + widthOf(name) + GAP, -GAP);
  const width = Math.max(120, ...rows.map((row) => total(row ?? []))) + 48; // room for edges that lead back
  const boxes = new Map<string, Box>();
  rows.forEach((row, layer) => {
    let left = (width - total(row)) / 2;
    for (const { id, name, kind } of row) {
      const own = widthOf(name);
      boxes.set(id, { id, name, kind, x: left + own / 2, y: 20 + layer * LAYER, width: own });
      left += own + GAP;
    }
  });
  const lines = edges.flatMap(({ source, target, label, conditional = false }): Line[] => {
    const from = boxes.get(source);
    const to = boxes.get(target);
    if (!from || !to) return [];
    return [{ ...lineOf(from, to, width), label, conditional }];
  });
  return {
    boxes: [...boxes.values()],
    lines,
    width,
    height: 20 + Math.max(1, rows.length) * LAYER - LAYER + HEIGHT + 20,
  };
}

function lineOf(from: Box, to: Box, width: number): { path: string; x: number; y: number } {
  if (to.y > from.y) {
    const [top, bottom] = [from.y + HEIGHT, to.y];
    const far = bottom - top > LAYER; // past other layers: around them
    const bend = far ? (from.x + to.x) / 2 + (from.x <= width / 2 ? -1 : 1) * (width / 3) : from.x;
    const middle = (top + bottom) / 2;
    const path = far
      ? `M${from.x} ${top} C${bend} ${top + 30} ${bend} ${bottom - 30} ${to.x} ${bottom}`
      : `M${from.x} ${top} C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${bottom}`;
    return { path, x: (from.x + to.x) / 2, y: middle };
  }
  const side = width - 8; // back to where it was: along the right side
  const [start, end] = [from.y + HEIGHT / 2, to.y + HEIGHT / 2];
  const path = `M${from.x + from.width / 2} ${start} C${side} ${start} ${side} ${end} ${to.x + to.width / 2} ${end}`;
  return { path, x: side - 20, y: (start + end) / 2 };
}
