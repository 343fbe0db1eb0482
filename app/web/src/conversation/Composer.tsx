// Where a person writes: Enter sends, Shift+Enter breaks the line, the arrow up brings back what was written before.
import { useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "../parts/Icon.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";
import { short } from "../state/words.js";

const TALLEST = 240; // pixels

export function Composer({ session }: { session: Session }) {
  const desk = useDesk();
  const box = useRef<HTMLTextAreaElement>(null);
  const back = useRef(0); // how many messages before the newest one is shown
  const draft = session.draft.value;
  const working = session.working.value;

  useLayoutEffect(() => {
    const area = box.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(TALLEST, area.scrollHeight + 2)}px`;
  }, [draft, session]);

  session.write = () => requestAnimationFrame(() => box.current?.focus());
  if (desk.agents.value.length === 0) return null;

  const send = async (): Promise<void> => {
    const text = draft.trim();
    if (text === "" || working || session.sending.value) return;
    desk.settle();
    session.draft.value = ""; // at once: the next message may be begun while this one is on its way
    back.current = 0;
    if (await session.say(text, desk.chosenAgent)) void desk.newThreads();
    else if (session.draft.value === "") session.draft.value = draft;
  };

  const recall = (step: number): boolean => {
    const said = session.rows.value
      .filter((row) => (row.kind as string) === "ask" && row["answer"] !== true)
      .map((row) => row["text"] as string);
    const at = back.current + step;
    if (at < 0 || at > said.length) return false;
    back.current = at;
    session.draft.value = at === 0 ? "" : (said.at(-at) ?? "");
    return true;
  };

  const key = (event: KeyboardEvent): void => {
    const area = event.currentTarget as HTMLTextAreaElement;
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send();
    } else if (event.key === "ArrowUp" && area.selectionStart === 0 && area.selectionEnd === 0) {
      if (recall(1)) event.preventDefault();
    } else if (event.key === "ArrowDown" && back.current > 0 && area.selectionEnd === area.value.length) {
      if (recall(-1)) event.preventDefault();
    } else if (event.key === "Escape") area.blur();
  };

  const from = session.branchFrom.value;
  return (
    <form
      id="start"
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      {from !== null && (
        <p id="branching" class="branching" role="status">
          <Icon name="branch" /> A branch: goes on from run {short(from)}.
          <button type="button" class="link" onClick={() => (session.branchFrom.value = null)}>
            From the end instead
          </button>
        </p>
      )}
      <div class="composer-box">
        <label for="ask" class="hidden">
          Message
        </label>
        <textarea
          id="ask"
          ref={box}
          rows={1}
          placeholder="Say something to the agent"
          value={draft}
          onKeyDown={key}
          onInput={(event) => {
            desk.settle();
            back.current = 0;
            session.draft.value = event.currentTarget.value;
          }}
        />
        <div class="composer-foot">
          {desk.agents.value.length > 1 && (
            <>
              <label for="agent" class="hidden">
                Agent
              </label>
              <select
                id="agent"
                value={desk.agent.value ?? (session.thread === null ? desk.chosenAgent : "") ?? ""}
                onChange={(event) => (desk.agent.value = event.currentTarget.value || null)}
              >
                {session.thread !== null && <option value="">same agent</option>}
                {desk.agents.value.map((name) => (
                  <option key={name} value={name}>
                    {name}
                  </option>
                ))}
              </select>
            </>
          )}
          <span class="hint">Enter sends, Shift+Enter breaks the line</span>
          <span class="spring" />
          {working ? (
            <button
              id="stop"
              type="button"
              class="round"
              onClick={() => void session.halt()}
              aria-label="Stop"
              title="Stop"
            >
              <Icon name="stop" />
            </button>
          ) : (
            <button
              id="send"
              type="submit"
              class="round"
              disabled={draft.trim() === "" || session.sending.value}
              aria-label="Send"
              title="Send"
            >
              <Icon name="send" />
            </button>
          )}
        </div>
      </div>
    </form>
  );
}
