// What stands where no rows are: nothing yet, reading, refused, gone.
import type { Session } from "../state/session.js";

export function Nothing({ session }: { session: Session }) {
  const shown = session.shown.value;
  if (session.thread === null)
    return <Empty title="A new thread" text="Say something to the agent, or start a run from your program." />;
  if (shown?.link.error === "refused")
    return (
      <Empty
        title="Not allowed"
        text="This thread is not yours to watch. Sign in as somebody who may, or ask for access."
      />
    );
  if (shown?.link.error === "forgotten")
    return <Empty title="Forgotten" text="This thread was forgotten: all that was kept of it is deleted." />;
  if (session.rows.value.length > 0 || session.preview.value !== null) return null;
  if (shown === null || (shown.link.state !== "live" && shown.link.last === 0)) {
    return (
      <div class="reading" role="status" aria-label="Reading the thread">
        <i />
        <i />
        <i />
      </div>
    );
  }
  return (
    <Empty
      title="Nothing is here"
      text="Nothing has run in this thread yet, or it was deleted. Say something to the agent, or start a run from your program."
    />
  );
}

function Empty({ title, text }: { title: string; text: string }) {
  return (
    <div id="empty" class="empty">
      <h2>{title}</h2>
      <p>{text}</p>
    </div>
  );
}
