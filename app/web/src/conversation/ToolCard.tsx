// A tool call: its name and state, arguments as they come, the result in short; the whole result opens beside.
import { useSignalEffect } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Item } from "../client/runcast.js";
import { Copy } from "../parts/Copy.js";
import { Icon } from "../parts/Icon.js";
import { JsonTree, parsed } from "../parts/JsonTree.js";
import { State } from "../parts/State.js";
import { Since } from "../parts/Time.js";
import type { Session } from "../state/session.js";
import { duration, pretty } from "../state/words.js";

const str = (value: unknown): string => (value == null ? "" : String(value));

export function ToolCard({ item, session }: { item: Item; session: Session }) {
  const [open, setOpen] = useState(false);
  const name = str(item["name"]) || "tool";
  return (
    <div class="card" data-state={item.state}>
      <div class="card-head">
        <Icon name="tool" />
        <b>{name}</b>
        <code>{str(item["summary"])}</code>
        <span class="spring" />
        <State state={item.superseded ? "cut short" : item.state} />
        {item.state === "running" && item["started"] ? (
          <Since at={str(item["started"])} />
        ) : (
          <span class="mono">{duration(item["ms"] as number)}</span>
        )}
      </div>
      {item["error"] ? <p class="card-error">{str(item["error"])}</p> : null}
      {item["result"] ? <p class="card-result">{str(item["result"])}</p> : null}
      <div class="card-foot">
        <button type="button" class="link" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? "Hide arguments" : "Arguments"}
        </button>
        {item["result"] || item["error"] ? (
          <button type="button" class="link" onClick={() => void session.showResult(str(item["id"]), name)}>
            Full result
          </button>
        ) : null}
      </div>
      {open && <Arguments item={item} session={session} />}
    </div>
  );
}

/** A call's arguments out of the thread's events, while they are written too. */
function Arguments({ item, session }: { item: Item; session: Session }) {
  const { history } = session;
  const [text, setText] = useState<string | null>(item["args"] == null ? null : pretty(item["args"]));
  useEffect(() => history?.follow(), [history]);
  useSignalEffect(() => {
    if (history === null || history.revision.value === 0) return;
    const found = argumentsOf(session, str(item["id"]));
    if (found !== null) setText(found);
  });
  if (text === null) return <p class="quiet">Reading the arguments…</p>;
  return (
    <div class="tree">
      <Copy text={() => text} label="Copy arguments" />
      <JsonTree value={text === "" ? {} : parsed(text)} open={2} />
    </div>
  );
}

/** The newest call with this id, in the order of events. */
function argumentsOf(session: Session, id: string): string | null {
  let text: string | null = null;
  for (const { event } of session.history?.entries ?? []) {
    if (event["toolCallId"] !== id) continue;
    if (event.type === "TOOL_CALL_START") text = "";
    else if (event.type === "TOOL_CALL_ARGS" || event.type === "TOOL_CALL_CHUNK")
      text = (text ?? "") + str(event["delta"]);
  }
  return text;
}
