// What `runcast demo` has on its page: a worker to kill, a way to bring it back, and a count of what was lost.
import type { DemoWorker } from "./state/demo.js";
import { lostOf } from "./state/demo.js";
import type { Session } from "./state/session.js";
import { number } from "./state/words.js";

export function Demo({ demo, session }: { demo: DemoWorker; session: Session }) {
  const worker = demo.worker.value;
  const shown = session.shown.value;
  const busy = demo.busy.value;
  const dead = worker === null;
  return (
    <section id="demo" class="demo" aria-label="Demo" data-dead={dead}>
      <p>
        {dead ? (
          <>
            <b>The worker is dead</b> (kill -9). This page and the log are not.
          </>
        ) : (
          <>The agent works in a process of its own{worker ? <span class="mono"> {worker}</span> : null}.</>
        )}
      </p>
      <output id="lost" class="mono" aria-live="off">
        {shown === null ? "" : `${lostOf(shown.view.envelopes)} of ${number(shown.link.last)} events lost`}
      </output>
      <span class="spring" />
      {dead ? (
        <button id="demo-resume" type="button" disabled={busy} onClick={() => void demo.order("resume")}>
          Resume
        </button>
      ) : (
        <button id="demo-kill" type="button" class="danger" disabled={busy} onClick={() => void demo.order("kill")}>
          Kill the worker
        </button>
      )}
    </section>
  );
}
