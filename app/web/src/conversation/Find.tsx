// Search inside the thread: how many rows have these words, and the way from one to the next.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Item } from "../client/runcast.js";
import { Icon } from "../parts/Icon.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";

const SEARCHED = ["text", "name", "summary", "result", "error", "message"];

/** The keys of the rows that hold these words. */
export function matches(rows: readonly Item[], words: string): string[] {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return [];
  return rows
    .filter((row) =>
      SEARCHED.some((field) => typeof row[field] === "string" && (row[field] as string).toLowerCase().includes(wanted)),
    )
    .map(({ key }) => key);
}

export function Find({ session }: { session: Session }) {
  const desk = useDesk();
  const words = useSignal("");
  const at = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const found = matches(session.rows.value, words.value);
  const go = (step: number): void => {
    if (found.length === 0) return;
    at.value = (at.value + step + found.length) % found.length;
    session.reveal(found[at.value] as string);
    input.current?.focus({ preventScroll: true });
  };
  const key = (event: KeyboardEvent): void => {
    if (event.key === "Enter") {
      event.preventDefault();
      go(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") desk.finding.value = false;
  };
  return (
    <search class="find">
      <input
        ref={input}
        id="find"
        type="search"
        placeholder="Find in this thread"
        aria-label="Find in this thread"
        value={words.value}
        onKeyDown={key}
        onInput={(event) => {
          words.value = event.currentTarget.value;
          at.value = -1;
        }}
      />
      <span class="quiet" role="status">
        {words.value === "" ? "" : found.length === 0 ? "nothing" : `${Math.max(0, at.value) + 1} of ${found.length}`}
      </span>
      <button type="button" class="icon" aria-label="Previous match" onClick={() => go(-1)}>
        <Icon name="back" />
      </button>
      <button type="button" class="icon" aria-label="Next match" onClick={() => go(1)}>
        <Icon name="next" />
      </button>
      <button type="button" class="icon" aria-label="Close search" onClick={() => (desk.finding.value = false)}>
        <Icon name="cross" />
      </button>
    </search>
  );
}
