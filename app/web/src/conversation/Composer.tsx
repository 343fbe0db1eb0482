// Where a person writes: Enter sends, Shift+Enter breaks the line, the arrow up brings back what was written before.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/Icon.js";
import type { AgentRow } from "../state/api.js";
import { useDesk } from "../state/context.js";
import type { OnBusy } from "../client/runcast.js";
import { accepted, partOf, refusal, takes } from "../state/files.js";
import { CHOICES, usual } from "../state/queue.js";
import type { Session } from "../state/session.js";
import { bytes, short } from "../state/words.js";
import { AgentForm } from "./AgentForm.js";

const TALLEST = 240; // pixels

/** The files of the message that is being written, and why some were left out. */
function useFiles(session: Session, agent: AgentRow | undefined) {
  const [refused, setRefused] = useState<string[]>([]);
  const files = session.files.value;
  const add = (given: File[]): void => {
    const kept = [...session.files.value];
    const why: string[] = [];
    for (const file of given) {
      const problem = refusal(
        file,
        agent,
        kept.reduce((sum, { size }) => sum + size, 0),
      );
      if (problem === null) kept.push(file);
      else why.push(problem);
    }
    session.files.value = kept;
    setRefused(why);
  };
  const remove = (file: File): void => {
    session.files.value = files.filter((each) => each !== file);
  };
  return { files, refused, add, remove };
}

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

  const agent = desk.agentRow;
  const { files, refused, add, remove } = useFiles(session, agent);
  const empty = draft.trim() === "" && files.length === 0;
  const origin = session.origin.value;
  const choice = session.queue.choice.value ?? usual(agent);

  const send = async (onBusy: OnBusy): Promise<void> => {
    const text = draft.trim();
    if (empty || session.sending.value) return;
    const forwarded = desk.values.forwarded(agent, session);
    if (forwarded === null) return; // the form shows what is wrong
    desk.settle();
    const parts = await Promise.all(files.map(partOf));
    session.draft.value = ""; // at once: the next message may be begun while this one is on its way
    session.files.value = [];
    const chosenBusy = session.queue.choice.value;
    session.queue.choice.value = null; // a choice is for one message
    back.current = 0;
    const message = parts.length === 0 ? text : [...(text === "" ? [] : [{ type: "text", text } as const]), ...parts];
    const chosen = desk.chosenAgent ?? (origin === null ? null : (desk.agents.value[0] ?? null));
    // A run that began a moment ago, of which this page does not know, is no reason to refuse. A question is answered first.
    const busy = working ? { onBusy } : session.questions.value.length > 0 ? {} : { onBusy: "queue" as const };
    if (await session.say({ message, agent: chosen, ...busy, ...forwarded })) return void desk.newThreads();
    if (session.draft.value === "") session.draft.value = draft;
    session.queue.choice.value ??= chosenBusy;
    if (session.files.value.length === 0) session.files.value = files;
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
      void send(event.ctrlKey || event.metaKey ? "interrupt" : choice);
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
        void send(choice);
      }}
    >
      {origin !== null && (
        <p id="origin" class="branching" role="status">
          <Icon name="branch" /> Goes on from event {origin.seq} of {desk.titleOf(origin.thread)}, in a new thread: the
          agent gets the messages and the state as they were.
        </p>
      )}
      {from !== null && (
        <p id="branching" class="branching" role="status">
          <Icon name="branch" /> A branch: goes on from run {short(from)}.
          <button type="button" class="link" onClick={() => (session.branchFrom.value = null)}>
            From the end instead
          </button>
        </p>
      )}
      {refused.length > 0 && (
        <p class="field-error" role="alert" id="refused">
          {refused.join(" ")}
        </p>
      )}
      <AgentForm session={session} agent={agent} />
      <div
        class="composer-box"
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault();
          add([...(event.dataTransfer?.files ?? [])]);
        }}
      >
        {files.length > 0 && (
          <ul class="attached" aria-label="Files of this message" id="files">
            {files.map((file) => (
              <li key={file.name} class="chip">
                <Icon name="file" /> {file.name} <small>{bytes(file.size)}</small>
                <button type="button" class="icon" aria-label={`Leave out ${file.name}`} onClick={() => remove(file)}>
                  <Icon name="cross" />
                </button>
              </li>
            ))}
          </ul>
        )}
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
          onPaste={(event) => {
            const pasted = [...(event.clipboardData?.files ?? [])];
            if (pasted.length > 0) {
              event.preventDefault();
              add(pasted);
            }
          }}
          onInput={(event) => {
            desk.settle();
            back.current = 0;
            session.draft.value = event.currentTarget.value;
          }}
        />
        <div class="composer-foot">
          {takes(agent) && (
            <label class="clip" title="Add files">
              <Icon name="clip" />
              <input
                id="file"
                type="file"
                multiple
                aria-label="Add files"
                accept={accepted(agent)}
                onChange={(event) => {
                  add([...(event.currentTarget.files ?? [])]);
                  event.currentTarget.value = "";
                }}
              />
            </label>
          )}
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
          {working && (
            <select
              id="busy"
              aria-label="While the agent works, the message will"
              title={CHOICES.find(({ value }) => value === choice)?.title}
              value={choice}
              onChange={(event) => (session.queue.choice.value = event.currentTarget.value as OnBusy)}
            >
              {CHOICES.map(({ value, label, title }) => (
                <option key={value} value={value} title={title}>
                  {label}
                </option>
              ))}
            </select>
          )}
          <span class="hint">
            {working ? "Ctrl+Enter stops the run and sends" : "Enter sends, Shift+Enter breaks the line"}
          </span>
          <span class="spring" />
          {working && (
            <button
              id="stop"
              type="button"
              class={empty ? "round" : "round plain"}
              onClick={() => void session.halt()}
              aria-label="Stop"
              title="Stop"
            >
              <Icon name="stop" />
            </button>
          )}
          {(!working || !empty) && (
            <button
              id="send"
              type="submit"
              class="round"
              disabled={empty || session.sending.value}
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
