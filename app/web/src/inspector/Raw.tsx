// The raw log: envelopes as they came, or events as they are kept; filtered, copied, and a way to each event's moment.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { copied } from "../parts/Copy.js";
import type { Session } from "../state/session.js";

const STEP = 200; // rows

interface Line {
  seq: number;
  type: string;
  text: string; // all of it, for the filter and for copies
  shown: string;
}

export function Raw({ session }: { session: Session }) {
  const kind = useSignal<"envelopes" | "events">("envelopes");
  const words = useSignal("");
  const most = useSignal(STEP);
  const told = useSignal("");
  const { history } = session;
  const events = kind.value === "events";
  useEffect(() => (events ? history?.follow() : undefined), [history, events]);
  const view = session.shown.value?.view;
  const revision = history?.revision.value;
  const wanted = words.value.toLowerCase();
  const all: Line[] =
    events && revision !== undefined
      ? (history?.entries ?? []).map((entry) => ({
          seq: entry.seq,
          type: entry.event.type,
          text: JSON.stringify(entry),
          shown: JSON.stringify(entry.event),
        }))
      : (view?.envelopes ?? []).map((each) => ({
          seq: each.seq,
          type: each.type.replace("agent.", ""),
          text: JSON.stringify(each),
          shown: JSON.stringify(each.payload),
        }));
  const found = wanted === "" ? all : all.filter(({ text }) => text.toLowerCase().includes(wanted));
  const copy = async (): Promise<void> => {
    const done = await copied(found.map(({ text }) => text).join("\n"));
    told.value = done ? `${found.length} copied` : "The browser does not let this page copy.";
  };
  return (
    <div id="raw">
      <div class="bar">
        <label for="kind" class="hidden">
          What is listed
        </label>
        <select
          id="kind"
          value={kind.value}
          onChange={(event) => (kind.value = event.currentTarget.value as "envelopes" | "events")}
        >
          <option value="envelopes">Envelopes</option>
          <option value="events">Events</option>
        </select>
        <input
          id="filter"
          type="search"
          placeholder="filter, e.g. tool"
          aria-label={events ? "Filter events" : "Filter envelopes"}
          value={words.value}
          onInput={(event) => (words.value = event.currentTarget.value)}
        />
        <button id="copy" type="button" class="plain" onClick={() => void copy()}>
          Copy
        </button>
      </div>
      <p class="quiet" role="status" id="copied">
        {told.value}
      </p>
      <p class="quiet" id="count">
        {found.length === all.length ? `${all.length} shown` : `${found.length} of ${all.length}`}
        {!events && view && view.count > all.length ? `, the newest of ${view.count}` : ""}
        {view?.missed ? `, ${view.missed} were not sent` : ""}
      </p>
      <ol id="log" tabIndex={0} aria-label={events ? "Raw events" : "Raw envelopes"}>
        {found
          .slice(-most.value)
          .reverse()
          .map((line, index) => (
            <li key={`${line.seq} ${index}`}>
              <button
                type="button"
                class="link mono"
                title="Look at this moment"
                onClick={() => (session.moment.value = line.seq)}
              >
                {line.seq}
              </button>{" "}
              <b>{line.type}</b> <span>{line.shown.length > 2000 ? `${line.shown.slice(0, 2000)}…` : line.shown}</span>
            </li>
          ))}
      </ol>
      {found.length > most.value && (
        <button type="button" class="plain" onClick={() => (most.value += STEP)}>
          Show older
        </button>
      )}
    </div>
  );
}
