// The threads, newest first, named by their first message; a search over them.
import { useSignal } from "@preact/signals";
import { Icon } from "../parts/Icon.js";
import { State } from "../parts/State.js";
import { Ago } from "../parts/Time.js";
import type { ThreadRow } from "../state/api.js";
import { useDesk } from "../state/context.js";

export function Threads() {
  const desk = useDesk();
  const words = useSignal("");
  const threads = desk.threads.value;
  const wanted = words.value.trim().toLowerCase();
  const found = (threads ?? []).filter(
    ({ thread_id }) =>
      wanted === "" ||
      thread_id.toLowerCase().includes(wanted) ||
      desk.titleOf(thread_id).toLowerCase().includes(wanted),
  );
  return (
    <nav aria-label="Threads" class={desk.listing.value ? "open" : undefined} id="nav">
      <div class="nav-head">
        <button id="fresh" type="button" class="wide" onClick={() => desk.show(null)}>
          <Icon name="plus" /> New thread
        </button>
        <input
          id="search"
          type="search"
          placeholder="Search threads"
          aria-label="Search threads"
          value={words.value}
          onInput={(event) => (words.value = event.currentTarget.value)}
        />
      </div>
      {threads === null && !desk.refused.value && (
        <div class="reading" role="status" aria-label="Reading the threads">
          <i />
          <i />
        </div>
      )}
      {threads === null && desk.refused.value && <p class="quiet pad">The list of threads cannot be read.</p>}
      {threads !== null && found.length === 0 && (
        <p class="quiet pad">{wanted === "" ? "No threads yet." : "No thread has these words in its title."}</p>
      )}
      <ul id="threads" class="list">
        {found.map((row) => (
          <Thread key={row.thread_id} row={row} />
        ))}
      </ul>
    </nav>
  );
}

function Thread({ row }: { row: ThreadRow }) {
  const desk = useDesk();
  const current = desk.session.value.thread === row.thread_id;
  const session = desk.session.value;
  const seen = current ? session.shown.value?.view.status : undefined; // sooner than the list
  const state = current && session.stalled.value ? "truncated" : (seen ?? row.status);
  return (
    <li>
      <button
        type="button"
        aria-current={current ? "true" : undefined}
        title={row.thread_id}
        onClick={() => desk.show(row.thread_id)}
      >
        <span class="thread-title">{desk.titleOf(row.thread_id)}</span>
        <small>
          {state === null || state === "completed" || state === "cancelled" ? (
            <Ago at={row.updated_at} />
          ) : (
            <State state={state} />
          )}
        </small>
      </button>
    </li>
  );
}
