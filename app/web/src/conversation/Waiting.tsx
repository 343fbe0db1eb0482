// The messages that wait, above the place where one writes: everybody who watches sees them, edits and withdraws them.
import { useEffect, useRef } from "preact/hooks";
import type { Queued } from "../client/runcast.js";
import { Icon } from "../parts/Icon.js";
import type { Session } from "../state/session.js";

const PLACES: Record<string, string> = {
  steer: "at the agent's next step",
  interrupt: "next",
  rollback: "next, instead of the run",
};

export function Waiting({ session }: { session: Session }) {
  const waiting = session.queue.waiting.value;
  if (waiting.length === 0) return null;
  const asks = session.questions.value.length > 0;
  return (
    <section id="waiting" class="waiting" aria-labelledby="waiting-title">
      <h2 id="waiting-title">
        <span role="status">
          {waiting.length === 1 ? "1 message waits" : `${waiting.length} messages wait`}
          {asks ? " for the answer" : ""}
        </span>
      </h2>
      <ol>
        {waiting.map((each) => (
          <li key={each.run_id} data-run={each.run_id}>
            {session.queue.editing.value === each.run_id ? (
              <Edit session={session} message={each} />
            ) : (
              <Shown session={session} message={each} />
            )}
          </li>
        ))}
      </ol>
    </section>
  );
}

function Shown({ session, message }: { session: Session; message: Queued }) {
  const { queue } = session;
  const place = PLACES[message.on_busy];
  return (
    <>
      <span class="waiting-text" title={message.text}>
        {message.files > 0 && <Icon name="file" />}
        {message.text}
      </span>
      {place !== undefined && <span class="badge">{place}</span>}
      <button
        type="button"
        class="icon"
        aria-label="Edit this message"
        title="Edit"
        onClick={() => (queue.editing.value = message.run_id)}
      >
        <Icon name="edit" />
      </button>
      <button
        type="button"
        class="icon"
        aria-label="Withdraw this message"
        title="Withdraw"
        disabled={session.sending.value}
        onClick={() => void queue.withdraw(message.run_id)}
      >
        <Icon name="cross" />
      </button>
    </>
  );
}

function Edit({ session, message }: { session: Session; message: Queued }) {
  const { queue } = session;
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => box.current?.select(), []);
  const save = (): void => {
    const text = box.current?.value.trim() ?? "";
    if (text === "" || text === message.text) queue.editing.value = null;
    else void queue.edit(message.run_id, text);
  };
  return (
    <form
      class="waiting-edit"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      <textarea
        ref={box}
        aria-label="The message that waits"
        rows={2}
        defaultValue={message.text}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            save();
          } else if (event.key === "Escape") queue.editing.value = null;
        }}
      />
      <button type="submit" class="plain" disabled={session.sending.value}>
        Save
      </button>
      <button type="button" class="plain" onClick={() => (queue.editing.value = null)}>
        Cancel
      </button>
    </form>
  );
}
