// `runcast` in the browser's console: what is shown, and how much of it is drawn. The tests look here too.
import { effect } from "@preact/signals";
import type { Desk } from "./desk.js";

interface Exposed {
  view: unknown;
  link: unknown;
  drawn: number; // envelopes that the page shows; the view may be ahead of it
}

export function expose(desk: Desk): void {
  const target = globalThis as { runcast?: Exposed };
  effect(() => {
    const shown = desk.session.value.shown.value;
    if (shown === null) {
      delete target.runcast;
      return;
    }
    const { view, link } = shown;
    const exposed = { view, link, drawn: target.runcast?.view === view ? target.runcast.drawn : -1 };
    const count = view.count;
    target.runcast = exposed;
    setTimeout(() => (exposed.drawn = count), 0); // the page is drawn before a timer comes to its turn
  });
}
