// A moment in the reader's zone, with the exact one on hover.
import { signal } from "@preact/signals";
import { ago, clock, duration, exact } from "../state/words.js";

/** Now, twice a second. */
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 500);

export function Clock({ at }: { at: string | number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {clock(at)}
    </time>
  );
}

export function Ago({ at }: { at: number }) {
  return (
    <time dateTime={new Date(at).toISOString()} title={exact(at)}>
      {ago(at, now.value)}
    </time>
  );
}

/** How long something has taken so far. */
export function Since({ at }: { at: string }) {
  return <span class="mono">{duration(Math.max(0, now.value - Date.parse(at)))}</span>;
}
