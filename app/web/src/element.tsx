// <runcast-thread>: one thread inside another page, in a shadow root, so that neither page's style touches the other.
//
//   <script type="module" src="https://host/runcast-thread.js"></script>
//   <runcast-thread base="https://host/" thread="thread-7"></runcast-thread>
//
// `element.headers` are sent with each request: a record, or a function that gives one each time. The host names the
// page's origin in `cors`, and decides in `authorize` what it may see.
import { render } from "preact";
import { Announcer } from "./Announcer.js";
import type { HeaderRecord } from "./client/runcast.js";
import { Composer } from "./conversation/Composer.js";
import { Conversation } from "./conversation/Conversation.js";
import { Waiting } from "./conversation/Waiting.js";
import { Beside } from "./inspector/Inspector.js";
import { Api } from "./state/api.js";
import { DeskContext } from "./state/context.js";
import { Desk } from "./state/desk.js";
import css from "./styles/index.css?inline";

const OWN =
  ':host { display: block; height: 32rem; } .embedded { color: var(--ink); background: var(--paper); font: 15px/1.55 system-ui, -apple-system, "Segoe UI", sans-serif; height: 100%; display: flex; flex-direction: column; position: relative; overflow: hidden; } .embedded .side { inset: 0 0 0 auto; position: absolute; z-index: 4; width: min(26rem, 100%); }';

function Embedded({ desk }: { desk: Desk }) {
  const session = desk.session.value;
  return (
    <DeskContext.Provider value={desk}>
      <div class="embedded">
        <Conversation key={session.thread ?? ""} session={session} />
        <Waiting session={session} />
        <Composer session={session} />
        {session.beside.value !== null && <Beside session={session} />}
        <Announcer session={session} />
      </div>
    </DeskContext.Provider>
  );
}

export class RuncastThread extends HTMLElement {
  static readonly observedAttributes = ["thread", "base"];
  private desk: Desk | null = null;
  private given: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>) | undefined;

  get headers(): HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>) | undefined {
    return this.given;
  }

  set headers(headers) {
    this.given = headers;
    this.draw();
  }

  connectedCallback(): void {
    if (this.shadowRoot === null) {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(css + OWN);
      this.attachShadow({ mode: "open" }).adoptedStyleSheets = [sheet];
    }
    this.draw();
  }

  attributeChangedCallback(): void {
    this.draw();
  }

  disconnectedCallback(): void {
    this.leave();
  }

  private draw(): void {
    if (!this.isConnected || this.shadowRoot === null) return;
    this.leave();
    const base = new URL(this.getAttribute("base") ?? ".", location.href);
    if (!base.pathname.endsWith("/")) base.pathname += "/";
    this.desk = new Desk(new Api(base, this.given), this.getAttribute("thread"), true);
    render(<Embedded desk={this.desk} />, this.shadowRoot);
  }

  private leave(): void {
    this.desk?.session.value.close();
    this.desk = null;
    if (this.shadowRoot !== null) render(null, this.shadowRoot);
  }
}

customElements.define("runcast-thread", RuncastThread);
