// What must not be overlooked: a run whose process died, an order that was refused.
import { Icon } from "../parts/Icon.js";
import { Clock } from "../parts/Time.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";

export function Stalled({ session }: { session: Session }) {
  const demo = useDesk().demo.value;
  if (!session.stalled.value) return null;
  const run = session.runs.value.at(-1);
  return (
    <div class="banner loud" data-tone="bad" role="alert">
      <Icon name="warn" />
      <div>
        <b>The worker died in the middle of this run.</b>
        <p>
          {run?.ended_at ? (
            <>
              It stopped at <Clock at={run.ended_at} />, after event {run.last_seq}.{" "}
            </>
          ) : (
            `It stopped after event ${run?.last_seq ?? ""}. `
          )}
          Everything up to there is kept. Resume goes on where it broke off: finished steps do not run again, and what
          was half written is taken back.
        </p>
      </div>
      <button
        id="resume"
        type="button"
        disabled={session.sending.value}
        onClick={() => void (demo?.worker.value === null ? demo.order("resume") : session.resume())}
      >
        Resume
      </button>
    </div>
  );
}

export function Trouble({ session }: { session: Session }) {
  const text = session.trouble.value;
  if (text === null) return null;
  return (
    <div class="banner" data-tone="bad" role="alert">
      <span class="banner-text">{text}</span>
      <button type="button" class="icon" aria-label="Dismiss" onClick={() => (session.trouble.value = null)}>
        <Icon name="cross" />
      </button>
    </div>
  );
}
