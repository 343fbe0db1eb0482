// A JSON value as a tree that opens by hand: keys and texts are drawn as text, long ones in part.
import { useState } from "preact/hooks";

const SHOWN = 100; // members that are drawn at once
const LONGEST = 400; // characters of a text that are drawn at once

export type Marks = ReadonlyMap<string, "added" | "changed">;

interface Given {
  value: unknown;
  name?: string | undefined;
  path?: string;
  open?: number; // levels that are open at first
  marks?: Marks | undefined;
}

export function JsonTree({ value, open = 1, marks }: Given) {
  return (
    <ul class="json">
      <Member value={value} open={open} marks={marks} path="" />
    </ul>
  );
}

function Member({ value, name, path = "", open = 0, marks }: Given) {
  const mark = marks?.get(path);
  const nested = value !== null && typeof value === "object";
  return (
    <li data-mark={mark}>
      {nested ? (
        <Nested value={value as object} name={name} path={path} open={open} marks={marks} />
      ) : (
        <div class="leaf">
          <Name name={name} />
          <Leaf value={value} />
        </div>
      )}
    </li>
  );
}

const pathTo = (path: string, key: string): string => `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;

function Name({ name }: { name: string | undefined }) {
  return name === undefined ? null : <span class="key">{name}: </span>;
}

function Leaf({ value }: { value: unknown }) {
  const [whole, setWhole] = useState(false);
  if (typeof value !== "string")
    return <span class={`json-${value === null ? "null" : typeof value}`}>{String(value)}</span>;
  const shown = whole || value.length <= LONGEST ? value : `${value.slice(0, LONGEST)}…`;
  return (
    <>
      <span class="json-string">{shown}</span>
      {shown !== value && (
        <button type="button" class="link" onClick={() => setWhole(true)}>
          all {value.length} characters
        </button>
      )}
    </>
  );
}

function Nested({ value, name, path = "", open, marks }: Given & { value: object; open: number }) {
  const [shown, setShown] = useState(open > 0);
  const [most, setMost] = useState(SHOWN);
  const members = Object.entries(value);
  const list = Array.isArray(value);
  const inside = marks !== undefined && [...marks.keys()].some((each) => each.startsWith(`${path}/`));
  const label = list ? `[${members.length}]` : `{${members.length}}`;
  if (members.length === 0)
    return (
      <div class="leaf">
        <Name name={name} />
        <span class="json-null">{list ? "[]" : "{}"}</span>
      </div>
    );
  return (
    <>
      <button type="button" class="fold" aria-expanded={shown || inside} onClick={() => setShown(!shown)}>
        <Name name={name} />
        <span class="json-null">{label}</span>
      </button>
      {(shown || inside) && (
        <ul>
          {members
            .filter(([key], index) => index < most || marks?.has(pathTo(path, key)))
            .map(([key, each]) => (
              <Member key={key} value={each} name={key} path={pathTo(path, key)} open={open - 1} marks={marks} />
            ))}
          {members.length > most && (
            <li>
              <button type="button" class="link" onClick={() => setMost(most + 10 * SHOWN)}>
                {members.length - most} more
              </button>
            </li>
          )}
        </ul>
      )}
    </>
  );
}

/** How many levels of a value are open at first where it has to be read: as many as `most` members fill. */
export function levelsOf(value: unknown, most = 40): number {
  let [open, shown, level] = [0, 0, [value]];
  while (level.length > 0) {
    level = level.flatMap((each) => (each !== null && typeof each === "object" ? Object.values(each) : []));
    shown += level.length;
    if (shown > most && open > 1) break;
    open += 1;
  }
  return open;
}

/** The places of a value whose keys or texts hold these words. */
export function matchesIn(value: unknown, words: string, most = 500): Marks {
  const found = new Map<string, "changed">();
  const wanted = words.trim().toLowerCase();
  const look = (each: unknown, name: string, path: string): void => {
    if (found.size >= most) return;
    const nested = each !== null && typeof each === "object";
    if (name.toLowerCase().includes(wanted) || (!nested && String(each).toLowerCase().includes(wanted)))
      found.set(path, "changed");
    if (nested) for (const [key, inner] of Object.entries(each)) look(inner, key, pathTo(path, key));
  };
  if (wanted !== "") look(value, "", "");
  return found;
}

/** A text as JSON, if it is some that is worth a tree; the text itself else. */
export function parsed(text: string): unknown {
  const start = text.trimStart()[0];
  if (start !== "{" && start !== "[") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
