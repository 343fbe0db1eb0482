// One row of the conversation, drawn by its kind.
import type { RefObject } from "preact";
import { memo } from "preact/compat";
import type { Item } from "../client/runcast.js";
import { Markdown } from "../markdown/Markdown.js";
import { JsonTree } from "../parts/JsonTree.js";
import { State } from "../parts/State.js";
import { Clock, Since } from "../parts/Time.js";
import type { Session } from "../state/session.js";
import { duration, headingOf, number, short } from "../state/words.js";
import type { Part } from "../state/api.js";
import { Attached } from "./Files.js";
import { AgentActions, RunActions, UserActions } from "./Actions.js";
import { ToolCard } from "./ToolCard.js";

interface Given {
  item: Item;
  depth: number;
  session: Session;
  element?: RefObject<HTMLElement | null> | undefined;
}

export const Row = memo(function Row({ item, depth, session, element }: Given) {
  const Drawn = KINDS[item.kind as string];
  return (
    <li
      ref={(element as RefObject<HTMLLIElement | null>) ?? null}
      data-kind={item.kind}
      data-key={item.key}
      data-depth={depth || undefined}
      class={item.superseded ? "superseded" : undefined}
      style={depth ? { marginInlineStart: `${Math.min(depth, 4) * 1.25}rem` } : undefined}
      tabIndex={-1}
    >
      {item.superseded && item.kind !== "tool" ? (
        <StruckOut item={item} />
      ) : (
        Drawn && <Drawn item={item} session={session} />
      )}
    </li>
  );
});

type Drawable = { item: Item; session: Session };
const str = (value: unknown): string => (value == null ? "" : String(value));

const KINDS: Record<string, (part: Drawable) => preact.JSX.Element | null> = {
  run({ item, session }) {
    const attempt = item["attempt"] as number | undefined;
    return (
      <div class="run-start" data-run={item.run}>
        <span class="mono" title={item.run}>
          Run {short(str(item.run))}
        </span>
        {attempt !== undefined && attempt > 1 && (
          <span class="badge" data-tone="warn">
            resumed, attempt {attempt}
          </span>
        )}
        <Clock at={str(item["at"])} />
        <RunActions session={session} run={str(item.run)} itemKey={item.key} />
      </div>
    );
  },
  ask: ({ item, session }) => (
    <div class="mine">
      <div class="said" role="group" aria-label="You said">
        <Attached parts={item["parts"] as Part[] | undefined} />
        {str(item["text"])}
      </div>
      {item["answer"] !== true && <UserActions session={session} item={item} />}
    </div>
  ),
  text({ item, session }) {
    const complete = item["complete"] === true;
    if (item["role"] === "user")
      return (
        <div class="mine">
          <div class="said" role="group" aria-label="You said">
            {str(item["text"])}
          </div>
          {complete && <UserActions session={session} item={item} />}
        </div>
      );
    if (item["broken"] === true) return <Broken text={str(item["text"])} />;
    return (
      <div class={`prose ${complete ? "" : "growing"}`}>
        <Markdown text={str(item["text"])} growing={!complete} />
        {complete && <AgentActions session={session} item={item} />}
      </div>
    );
  },
  reasoning: ({ item }) => (
    <details class="thought">
      <summary>{item["complete"] === true ? "Thought" : "Thinking…"}</summary>
      <Markdown text={str(item["text"])} growing={item["complete"] !== true} />
    </details>
  ),
  step({ item }) {
    const attempt = item["attempt"] as number | undefined;
    const total = (item["usage"] as { total?: number } | undefined)?.total;
    return (
      <div class="step">
        <span class="mono">{str(item["number"])}</span>
        <b>{str(item["name"])}</b>
        {attempt !== undefined && attempt > 1 && (
          <span class="badge" data-tone="warn">
            attempt {attempt}
          </span>
        )}
        {item.state !== "done" && <State state={item.state} />}
        {total ? <span>{number(total)} tokens</span> : null}
        <span class="spring" />
        {item.state === "running" ? (
          <Since at={str(item["started"])} />
        ) : (
          <span class="mono">{duration(item["ms"] as number)}</span>
        )}
      </div>
    );
  },
  subagent: ({ item }) => (
    <div class="step subagent">
      <span aria-hidden="true">↳</span>
      <b>{str(item["name"])}</b>
      <span>subagent</span>
      {item.state !== "done" && <State state={item.state} />}
      {item["error"] ? (
        <span class="badge" data-tone="bad">
          {str(item["error"])}
        </span>
      ) : null}
      <span class="spring" />
      <span class="mono">{duration(item["ms"] as number)}</span>
    </div>
  ),
  tool: ({ item, session }) => <ToolCard item={item} session={session} />,
  interrupt: ({ item, session }) =>
    session.questions.value.some(({ id }) => id === item["id"]) && item.run === session.shown.value?.view.run ? null : (
      <div class="step asked">
        <span class="badge" data-tone="warn">
          Asked
        </span>
        <span>{headingOf({ message: item["message"], reason: item["reason"] })}</span>
      </div>
    ),
  error: ({ item }) => (
    <div class="banner" data-tone="bad" role="alert">
      <span class="banner-text">
        <b>The run failed.</b> {item["code"] ? `${str(item["code"])}: ` : ""}
        {str(item["text"])}
      </span>
    </div>
  ),
  activity: ({ item }) => (
    <details class="note" data-activity={str(item["id"])}>
      <summary>{str(item["name"])}</summary>
      {typeof item["wanted"] === "number" ? <p class="quiet">Loading…</p> : <JsonTree value={item["content"]} />}
    </details>
  ),
  note: ({ item }) => (
    <details class="note">
      <summary>Note: {str(item["name"])}</summary>
      <JsonTree value={item["value"]} />
    </details>
  ),
};

/** What a dead worker had half written: it is taken back when the run is resumed. */
const Broken = ({ text }: { text: string }) => (
  <div class="prose broken">
    <span class="badge" data-tone="bad">
      Cut short
    </span>{" "}
    <s class="struck-text">{text}</s>
  </div>
);

/** What a broken attempt had emitted: folded, struck out, and there for whoever looks. */
function StruckOut({ item }: { item: Item }) {
  const text = str(item["text"] ?? item["message"] ?? item["name"]);
  const first = text.trim().split("\n")[0] ?? "";
  return (
    <details class="struck">
      <summary>
        <span class="badge" data-tone="warn">
          Taken back
        </span>
        <s>{first.length > 120 ? `${first.slice(0, 120)}…` : first}</s>
      </summary>
      <s class="struck-text">{text}</s>
    </details>
  );
}
