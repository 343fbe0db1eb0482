// Draws the A2UI surfaces of a thread with A2UI's own renderer: those that `watch` shows, as they come, and those that the
// official client holds after it joined the thread, by `join()`. `drawn()` and `joined()` give the DOM of each surface.
//
//   index.html?host=<url of runcast>&thread=<id>
import { MessageProcessor } from "@a2ui/web_core/v0_9";
import { A2uiSurface, basicCatalog } from "@a2ui/react/v0_9";
import { AbstractAgent } from "@ag-ui/client";
import { createElement } from "react";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import { from } from "rxjs";

const query = new URLSearchParams(location.search);
const [base, thread] = [query.get("host"), query.get("thread")];
const { watch } = await import(/* @vite-ignore */ new URL("runcast.js", base).href);

/** One activity's place on the page, drawn anew whenever its content changes. */
class Place {
  #element = document.body.appendChild(document.createElement("section"));
  #root = createRoot(this.#element);
  #text = "";
  problems = [];

  draw(content) {
    const text = JSON.stringify(content);
    if (text === this.#text) return;
    this.#text = text;
    this.problems = [];
    const processor = new MessageProcessor([basicCatalog]);
    for (const operation of content?.a2ui_operations ?? []) {
      try {
        processor.processMessages([operation]);
      } catch (error) {
        this.problems.push(String(error?.message ?? error));
      }
    }
    const surfaces = [...processor.model.surfacesMap.values()];
    flushSync(() => this.#root.render(surfaces.map((surface) => createElement(A2uiSurface, { key: `${text} ${surface.id}`, surface }))));
  }

  /** The DOM, with React's running ids counted from the first one, and what could not be processed. */
  dom() {
    const ids = new Map();
    const html = this.#element.innerHTML.replace(/[«_:]r_?[0-9a-z]+[»_:]/g, (id) => {
      if (!ids.has(id)) ids.set(id, `id${ids.size}`);
      return ids.get(id);
    });
    return { html, text: this.#element.innerText, problems: this.problems };
  }
}

function drawAll(places, activities) {
  for (const { id, content } of activities) {
    if (!places.has(id)) places.set(id, new Place());
    places.get(id).draw(content);
  }
}
const doms = (places) => Object.fromEntries([...places].sort().map(([id, place]) => [id, place.dom()]));

const watched = new Map();
globalThis.seen = () => null;
watch({
  base,
  thread,
  onChange(view, link) {
    const activities = view.items.filter(({ kind, name }) => kind === "activity" && name === "a2ui-surface");
    drawAll(watched, activities);
    const whole = activities.every(({ wanted }) => wanted == null);
    globalThis.seen = () => ({ surfaces: activities.length, whole, link: link.state, run: view.status });
  },
});
globalThis.drawn = () => doms(watched);

class Joined extends AbstractAgent {
  constructor(events) {
    super({ threadId: thread });
    this.events = events;
  }
  run() {
    return from(this.events);
  }
}

globalThis.join = async () => {
  const { events } = await (await fetch(new URL(`threads/${thread}/join`, base))).json();
  const agent = new Joined(events);
  await agent.runAgent({}).catch(() => {}); // a run that failed, or has not ended
  const places = new Map();
  drawAll(places, agent.messages.filter(({ role, activityType }) => role === "activity" && activityType === "a2ui-surface"));
  globalThis.joined = () => doms(places);
};
