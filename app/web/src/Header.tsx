// The head of the page: what is looked at, how it stands, and how the line is.
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./parts/Icon.js";
import { State } from "./parts/State.js";
import { now } from "./parts/Time.js";
import { useDesk } from "./state/context.js";
import type { Session } from "./state/session.js";
import { duration } from "./state/words.js";

export function Header() {
  const desk = useDesk();
  const session = desk.session.value;
  const title = desk.titleOf(session.thread);
  const state = session.stalled.value
    ? "truncated"
    : (session.shown.value?.view.status ?? session.preview.value?.status);
  const waiting = session.questions.value.length > 0;
  useEffect(() => {
    document.title = `${waiting ? "(?) " : ""}${title} · runcast`;
  }, [title, waiting]);
  return (
    <header>
      <button
        type="button"
        class="icon only-narrow"
        aria-label="Threads"
        aria-expanded={desk.listing.value}
        onClick={() => (desk.listing.value = !desk.listing.value)}
      >
        <Icon name="menu" />
      </button>
      <span class="brand">
        <span aria-hidden="true" class="mark" />
        runcast
      </span>
      {desk.renaming.value ? (
        <>
          <h1 class="hidden">{title}</h1>
          <Rename title={title} />
        </>
      ) : (
        <h1 id="title" title={session.thread ?? undefined}>
          {title}
        </h1>
      )}
      {session.thread !== null && !desk.renaming.value && (
        <button
          id="rename"
          type="button"
          class="icon"
          aria-label="Rename this thread"
          title="Rename this thread (e)"
          onClick={() => (desk.renaming.value = true)}
        >
          <Icon name="edit" />
        </button>
      )}
      <State id="status" state={state} />
      <Elapsed session={session} />
      <span class="spring" />
      <Line session={session} />
      <button
        type="button"
        class="icon"
        aria-label="Find in this thread"
        title="Find in this thread (f)"
        onClick={() => (desk.finding.value = !desk.finding.value)}
      >
        <Icon name="search" />
      </button>
      <button type="button" class="icon" aria-label="Keys" title="Keys (?)" onClick={() => (desk.helping.value = true)}>
        <b aria-hidden="true">?</b>
      </button>
      <button
        type="button"
        class="icon"
        aria-label="Details"
        title="Details (i)"
        aria-expanded={desk.inspecting.value}
        onClick={() => (desk.inspecting.value = !desk.inspecting.value)}
      >
        <Icon name="panel" />
      </button>
    </header>
  );
}

function Rename({ title }: { title: string }) {
  const desk = useDesk();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.select(), []);
  return (
    <form
      class="rename"
      onSubmit={(event) => {
        event.preventDefault();
        void desk.rename(input.current?.value ?? "");
      }}
    >
      <input
        id="title-text"
        ref={input}
        defaultValue={title}
        maxLength={200}
        aria-label="Title of this thread, empty for its first message"
        onBlur={() => (desk.renaming.value = false)}
        onKeyDown={(event) => {
          if (event.key === "Escape") desk.renaming.value = false;
        }}
      />
    </form>
  );
}

function Elapsed({ session }: { session: Session }) {
  const view = session.shown.value?.view;
  const run = view?.run == null ? undefined : view.runs[view.run];
  if (run === undefined || session.stalled.value) return null;
  const end = run.ended ? Date.parse(run.ended) : now.value;
  return (
    <span id="elapsed" class="mono quiet" aria-hidden="true">
      {duration(Math.max(0, end - Date.parse(run.started)))}
    </span>
  );
}

const LINES: Record<string, string> = {
  live: "Live",
  connecting: "Reconnecting",
  refused: "Not allowed",
  forgotten: "Forgotten",
  idle: "Idle",
};

function Line({ session }: { session: Session }) {
  const link = session.shown.value?.link;
  const state =
    link === undefined ? "idle" : link.error === "refused" || link.error === "forgotten" ? link.error : link.state;
  const behind = link && link.behind > 0 ? `, ${link.behind} behind` : "";
  return (
    <span
      id="link"
      class="line"
      data-state={state}
      role="status"
      aria-live="polite"
      title={link ? `position ${link.last}` : undefined}
    >
      <i aria-hidden="true" />
      <b>{state === "recovering" ? `Catching up${behind}` : LINES[state]}</b>
    </span>
  );
}
