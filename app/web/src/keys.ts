// Every key of the page outside of fields.
import type { Desk } from "./state/desk.js";

interface Key {
  key: string;
  label?: string;
  does: string;
  act: (desk: Desk) => void;
}

const focus = (id: string): void => {
  requestAnimationFrame(() => document.getElementById(id)?.focus());
};

function past(desk: Desk, step: number): void {
  const session = desk.session.value;
  desk.inspect("past");
  const head = session.history?.head ?? 0;
  const at = (session.moment.value ?? head) + step;
  session.moment.value = at >= head ? null : Math.max(1, at);
}

/** Move from row to row of the conversation. */
function move(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("#timeline > li[data-key]")];
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

export const KEYS: Key[] = [
  { key: "n", does: "write a message", act: () => focus("ask") },
  {
    key: "c",
    does: "a new thread",
    act: (desk) => {
      desk.show(null);
      focus("ask");
    },
  },
  {
    key: "t",
    does: "search the threads",
    act: (desk) => {
      desk.listing.value = true;
      focus("search");
    },
  },
  {
    key: "f",
    does: "find in this thread",
    act: (desk) => {
      desk.finding.value = true;
      focus("find");
    },
  },
  {
    key: "e",
    does: "rename this thread",
    act: (desk) => {
      desk.renaming.value = desk.session.value.thread !== null;
    },
  },
  { key: "j", does: "the next row", act: () => move(1) },
  { key: "k", does: "the row before", act: () => move(-1) },
  {
    key: "g",
    does: "jump to latest",
    act: () => {
      const box = document.querySelector("[data-scroller]");
      if (box) box.scrollTop = box.scrollHeight;
    },
  },
  {
    key: "i",
    does: "show or hide details",
    act: (desk) => {
      desk.inspecting.value = !desk.inspecting.value;
    },
  },
  { key: "1", does: "timeline", act: (desk) => desk.inspect("timeline") },
  { key: "0", does: "graph of the agent", act: (desk) => desk.inspect("graph") },
  { key: "2", does: "runs", act: (desk) => desk.inspect("runs") },
  { key: "3", does: "the past", act: (desk) => desk.inspect("past") },
  { key: "4", does: "raw log", act: (desk) => desk.inspect("raw") },
  {
    key: "/",
    does: "filter the raw log",
    act: (desk) => {
      desk.inspect("raw");
      focus("filter");
    },
  },
  { key: "[", does: "one event back in the past", act: (desk) => past(desk, -1) },
  { key: "]", does: "one event on", act: (desk) => past(desk, 1) },
  {
    key: "s",
    does: "stop the run",
    act: (desk) => {
      if (desk.session.value.working.value) void desk.session.value.halt();
    },
  },
  {
    key: "q",
    does: "to the messages that wait",
    act: () => document.querySelector<HTMLElement>("#waiting button")?.focus(),
  },
  {
    key: "?",
    does: "this sheet",
    act: (desk) => {
      desk.helping.value = true;
    },
  },
  {
    key: "Escape",
    label: "Esc",
    does: "close what lies over the page, and back to now",
    act: (desk) => {
      const session = desk.session.value;
      desk.listing.value = false;
      desk.finding.value = false;
      session.beside.value = null;
      session.moment.value = null;
    },
  },
];

/** Hear the keys until the returned function is called. */
export function listen(desk: Desk): () => void {
  const heard = (event: KeyboardEvent): void => {
    if (event.metaKey || event.ctrlKey || event.altKey || event.defaultPrevented) return;
    if ((event.target as Element | null)?.closest?.("input, textarea, select, dialog")) return;
    const found = KEYS.find(({ key }) => key === event.key);
    if (found === undefined) return;
    event.preventDefault();
    found.act(desk);
  };
  document.addEventListener("keydown", heard);
  return () => document.removeEventListener("keydown", heard);
}
