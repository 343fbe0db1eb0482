// The rows, in groups: a group that is out of sight is a space of its height. Ten thousand rows cost what is in view.
import type { RefObject } from "preact";
import { memo } from "preact/compat";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Item } from "../client/runcast.js";
import type { Session } from "../state/session.js";
import { depths } from "./lanes.js";
import { Row } from "./Row.js";

const GROUP = 24; // rows
const GUESS = 90; // pixels of a row that was never drawn

interface Given {
  session: Session;
  scroller: RefObject<HTMLDivElement | null>;
  leave: () => void; // the newest need not stay in view
}

export function Rows({ session, scroller, leave }: Given) {
  const rows = session.rows.value;
  const [wanted, want] = useState<{ key: string } | null>(null);
  const deep = depths(rows);
  const groups = useRef<Item[][]>([]);
  groups.current = grouped(rows, groups.current);

  session.reveal = (key) => {
    leave();
    want({ key });
  };
  useEffect(() => {
    const key = decodeURIComponent(location.hash.slice(1));
    if (key !== "" && rows.some((row) => row.key === key)) session.reveal(key);
  }, [session, rows.length > 0]);
  const target = wanted === null ? -1 : Math.floor(rows.findIndex(({ key }) => key === wanted.key) / GROUP);
  useLayoutEffect(() => {
    if (wanted === null) return;
    const row = scroller.current?.querySelector<HTMLElement>(`[data-key="${CSS.escape(wanted.key)}"]`);
    row?.scrollIntoView({ block: "center" });
    row?.focus({ preventScroll: true });
  }, [wanted]);

  return (
    <ol id="timeline" class="rows" aria-label="What the agent did">
      {groups.current.map((items, index) => (
        <Group
          key={index}
          items={items}
          depths={deep}
          session={session}
          scroller={scroller}
          last={index >= groups.current.length - 2}
          wanted={index === target}
        />
      ))}
    </ol>
  );
}

/** The rows in groups; a group whose rows are the same objects is the same array as before. */
function grouped(rows: Item[], former: Item[][]): Item[][] {
  const groups: Item[][] = [];
  for (let at = 0; at < rows.length; at += GROUP) {
    const items = rows.slice(at, at + GROUP);
    const before = former[groups.length];
    groups.push(
      before?.length === items.length && items.every((item, index) => item === before[index]) ? before : items,
    );
  }
  return groups;
}

interface GroupGiven {
  items: Item[];
  depths: ReadonlyMap<string, number>;
  session: Session;
  scroller: RefObject<HTMLDivElement | null>;
  last: boolean;
  wanted: boolean;
}

const Group = memo(function Group({ items, depths: deep, session, scroller, last, wanted }: GroupGiven) {
  const marker = useRef<HTMLLIElement>(null);
  const first = useRef<HTMLElement | null>(null);
  const [seen, setSeen] = useState(false);
  const height = useRef(items.length * GUESS);
  const shown = seen || last || wanted;

  useEffect(() => {
    const root = scroller.current;
    const element = shown ? first.current : marker.current;
    if (root === null || element === null) return;
    const watcher = new IntersectionObserver(
      () => {
        const box = root.getBoundingClientRect();
        const [top, bottom] = extent();
        setSeen(bottom > box.top - 1200 && top < box.bottom + 1200);
      },
      { root, rootMargin: "1000px 0px" },
    );
    /** Where the group begins and ends; its height is kept for when it is out of sight. */
    const extent = (): [number, number] => {
      if (!shown) {
        const at = element.getBoundingClientRect();
        return [at.top, at.bottom];
      }
      const rows = items.map(({ key }) =>
        root.querySelector(`[data-key="${CSS.escape(key)}"]`)?.getBoundingClientRect(),
      );
      const top = rows[0]?.top ?? 0;
      const bottom = rows.at(-1)?.bottom ?? top;
      if (bottom > top) height.current = bottom - top;
      return [top, bottom];
    };
    const edges = shown
      ? [...new Set([first.current, root.querySelector(`[data-key="${CSS.escape(items.at(-1)?.key ?? "")}"]`)])]
      : [element];
    for (const edge of edges) if (edge) watcher.observe(edge);
    return () => watcher.disconnect();
  }, [shown, items]);

  if (!shown) return <li ref={marker} class="unseen" aria-hidden="true" style={{ height: `${height.current}px` }} />;
  return (
    <>
      {items.map((item, index) => (
        <Row
          key={item.key}
          item={item}
          depth={deep.get(item.key) ?? 0}
          session={session}
          element={index === 0 ? first : undefined}
        />
      ))}
    </>
  );
});
