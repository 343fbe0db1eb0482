// Calls that are being written, at the end of the conversation: looked for whenever the line falls silent in a run.
import { useEffect, useState } from "preact/hooks";
import { Icon } from "../parts/Icon.js";
import { JsonTree, parsed } from "../parts/JsonTree.js";
import { State } from "../parts/State.js";
import { type PendingCall, pendingCalls } from "../state/pending.js";
import type { Session } from "../state/session.js";

const SOON = 600; // milliseconds of silence before the first look
const SELDOM = 4000; // between two looks, at most

export function Pending({ session }: { session: Session }) {
  const [calls, setCalls] = useState<PendingCall[]>([]);
  const working = session.working.value;
  const last = session.shown.value?.link.last ?? 0;
  useEffect(() => {
    setCalls([]);
    const { thread } = session;
    if (!working || thread === null) return;
    let current = true;
    let pause = SOON;
    const look = async (): Promise<void> => {
      timer = setTimeout(() => void look(), (pause = Math.min(SELDOM, pause * 1.3)));
      if (document.hidden) return;
      const page = await session.api.events(thread, last, 1000).catch(() => null);
      if (current && page !== null) setCalls(pendingCalls(page.events));
    };
    let timer = setTimeout(() => void look(), pause);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [session, working, last]);
  if (calls.length === 0) return null;
  return (
    <ol class="rows" id="pending" aria-label="Calls that are being written">
      {calls.map(({ id, name, args }) => (
        <li key={id} class="card" data-state="running">
          <div class="card-head">
            <Icon name="tool" />
            <b>{name}</b>
            <span class="spring" />
            <State state="running" />
          </div>
          {args !== "" && <JsonTree value={parsed(args)} open={2} />}
        </li>
      ))}
    </ol>
  );
}
