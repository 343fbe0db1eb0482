// The inspector: one thread's timeline, runs, past and raw log, one tab each.
import { useSignal } from "@preact/signals";
import { Copy } from "../parts/Copy.js";
import { Icon } from "../parts/Icon.js";
import { JsonTree, matchesIn, parsed } from "../parts/JsonTree.js";
import { useDesk } from "../state/context.js";
import type { Tab } from "../state/desk.js";
import { save } from "../state/export.js";
import type { Session } from "../state/session.js";
import { bytes } from "../state/words.js";
import { Graph } from "./AgentGraph.js";
import { Past } from "./Past.js";
import { Raw } from "./Raw.js";
import { Runs } from "./Runs.js";
import { Timeline } from "./Timeline.js";

const TABS: [Tab, string, (given: { session: Session }) => preact.JSX.Element][] = [
  ["timeline", "Timeline", Timeline],
  ["graph", "Graph", Graph],
  ["runs", "Runs", Runs],
  ["past", "Past", Past],
  ["raw", "Raw", Raw],
];

export function Inspector({ session }: { session: Session }) {
  const desk = useDesk();
  const tabs = TABS.filter(([name]) => name !== "graph" || desk.drawings.value.size > 0);
  const current = tabs.some(([name]) => name === desk.tab.value) ? desk.tab.value : "timeline";
  const step = (event: KeyboardEvent): void => {
    const move = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (move === 0) return;
    const at = tabs.findIndex(([name]) => name === current);
    const next = tabs[(at + move + tabs.length) % tabs.length];
    if (next === undefined) return;
    desk.tab.value = next[0];
    document.getElementById(`tab-${next[0]}`)?.focus();
  };
  const Panel = tabs.find(([name]) => name === current)?.[2] ?? Timeline;
  return (
    <aside aria-label="Details" class="side" id="inspector">
      <div class="tabs">
        <div role="tablist" aria-label="Details" onKeyDown={step}>
          {tabs.map(([name, label]) => (
            <button
              key={name}
              id={`tab-${name}`}
              role="tab"
              type="button"
              aria-selected={name === current}
              aria-controls="panel"
              tabIndex={name === current ? 0 : -1}
              onClick={() => (desk.tab.value = name)}
            >
              {label}
            </button>
          ))}
        </div>
        <button type="button" class="icon" aria-label="Close details" onClick={() => (desk.inspecting.value = false)}>
          <Icon name="cross" />
        </button>
      </div>
      <div id="panel" class="panel" role="tabpanel" aria-labelledby={`tab-${current}`} tabIndex={0}>
        <Panel session={session} />
      </div>
    </aside>
  );
}

const PART = 100_000; // characters of a long text that are shown at once

/** One long text beside the conversation: a tool's whole result. */
export function Beside({ session }: { session: Session }) {
  const { title, text } = session.beside.value ?? { title: "", text: null };
  return (
    <aside aria-label={title} class="side" id="full">
      <div class="tabs">
        <h2 id="full-title">{title}</h2>
        <span class="spring" />
        <button type="button" class="icon" aria-label="Close" onClick={() => (session.beside.value = null)}>
          <Icon name="cross" />
        </button>
      </div>
      <div class="panel" tabIndex={0} role="region" aria-label="The whole text">
        <LongText text={text} title={title} />
      </div>
    </aside>
  );
}

function LongText({ text, title }: { text: string | null; title: string }) {
  const parts = useSignal(1);
  const words = useSignal("");
  if (text === null) return <p class="quiet">Reading…</p>;
  const value = text.length <= 2_000_000 ? parsed(text) : text;
  const tree = typeof value !== "string";
  const marks = tree ? matchesIn(value, words.value) : new Map();
  const lines =
    tree || words.value.trim() === ""
      ? null
      : text.split("\n").filter((line) => line.toLowerCase().includes(words.value.trim().toLowerCase()));
  const shown = lines === null ? text : lines.join("\n");
  return (
    <>
      <div class="bar">
        <input
          type="search"
          id="search-result"
          placeholder="Search in the result"
          aria-label="Search in the result"
          value={words.value}
          onInput={(event) => (words.value = event.currentTarget.value)}
        />
        <span class="quiet" role="status">
          {words.value.trim() === "" ? bytes(text.length) : `${tree ? marks.size : (lines?.length ?? 0)} found`}
        </span>
        <Copy text={() => text} label="Copy result" />
        <button
          type="button"
          class="icon"
          aria-label="Download result"
          onClick={() => save(`${title.replace(/\W+/g, "_")}.txt`, text)}
        >
          <Icon name="download" />
        </button>
      </div>
      {!tree ? (
        <>
          <pre id="full-text">{shown.slice(0, parts.value * PART)}</pre>
          {shown.length > parts.value * PART && (
            <button type="button" class="plain" onClick={() => (parts.value += 1)}>
              Show more ({bytes(shown.length - parts.value * PART)} left)
            </button>
          )}
        </>
      ) : (
        <div id="full-text">
          <JsonTree value={value} open={3} marks={marks} />
        </div>
      )}
    </>
  );
}
