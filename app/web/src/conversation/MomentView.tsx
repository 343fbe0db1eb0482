// The conversation as it stood after one event of the past: messages and open questions, nothing to be done in it.
import { useMemo } from "preact/hooks";
import type { Message } from "../fold/events.js";
import { Markdown } from "../markdown/Markdown.js";
import { JsonTree, parsed } from "../parts/JsonTree.js";
import type { Session } from "../state/session.js";
import { headingOf, plain } from "../state/words.js";

export function MomentView({ session, seq }: { session: Session; seq: number }) {
  const { history } = session;
  const revision = history?.revision.value;
  const moment = useMemo(() => history?.at(seq), [history, seq, revision]);
  return (
    <>
      <div class="banner" data-tone="warn" role="status">
        <span class="banner-text">
          You look at the past: after event {seq} of {history?.head ?? 0}.
        </span>
        <button type="button" onClick={() => (session.moment.value = null)}>
          Back to now
        </button>
      </div>
      <ol class="rows" id="moment" aria-label="The conversation at this moment">
        {(moment?.messages ?? []).map((message, index) => (
          <li key={`${message.id} ${index}`} data-kind={message.role}>
            <MessageOf message={message} />
          </li>
        ))}
      </ol>
      {(moment?.interrupts ?? []).map((asked) => (
        <div key={asked.id} class="question">
          <p>{headingOf(asked)}</p>
          <p class="quiet">This question was open at this moment.</p>
        </div>
      ))}
    </>
  );
}

export function MessageOf({ message }: { message: Message }) {
  const text = plain(message.content);
  if (message.role === "user")
    return (
      <div class="mine">
        <div class="said">{text}</div>
      </div>
    );
  if (message.role === "tool")
    return (
      <div class="card">
        <p class="card-result">{text.slice(0, 2000)}</p>
      </div>
    );
  if (message.role === "reasoning")
    return (
      <details class="thought">
        <summary>Thought</summary>
        <Markdown text={text} />
      </details>
    );
  if (message.role === "activity")
    return (
      <div class="note">
        <b>{message.activityType}</b>
        <JsonTree value={message.content} />
      </div>
    );
  return (
    <div class="prose">
      {text !== "" && <Markdown text={text} />}
      {(message.toolCalls ?? []).map((call) => (
        <div key={call.id} class="card">
          <div class="card-head">
            <b>{call.function.name}</b>
          </div>
          <JsonTree value={parsed(call.function.arguments)} open={2} />
        </div>
      ))}
    </div>
  );
}
