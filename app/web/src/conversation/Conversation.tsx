// The conversation: rows in order, drawn where they are in sight, with the newest in view unless a person scrolled up.
import { useSignalEffect } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/Icon.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";
import { Find } from "./Find.js";
import { MomentView } from "./MomentView.js";
import { Nothing } from "./Nothing.js";
import { Stalled, Trouble } from "./Banners.js";
import { Pending } from "./Pending.js";
import { Questions } from "./Questions.js";
import { Rows } from "./Rows.js";

const NEAR = 80; // pixels from the end within which the newest stays in view

export function Conversation({ session }: { session: Session }) {
  const scroller = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const [away, setAway] = useState(false);
  const desk = useDesk();

  const toEnd = useCallback(() => {
    const box = scroller.current;
    if (box !== null) box.scrollTop = box.scrollHeight;
    following.current = true;
    setAway(false);
  }, []);

  useLayoutEffect(toEnd, [session]);
  useEffect(() => {
    const box = scroller.current;
    const inner = box?.firstElementChild;
    if (!box || !inner) return;
    // Whatever makes the conversation longer (words, pictures, opened parts): the end stays in view.
    const watcher = new ResizeObserver(() => {
      if (following.current) box.scrollTop = box.scrollHeight;
    });
    watcher.observe(inner);
    watcher.observe(box);
    return () => watcher.disconnect();
  }, []);
  useSignalEffect(() => {
    if (session.sending.value) toEnd();
  });

  const scrolled = (): void => {
    const box = scroller.current;
    if (box === null) return;
    const near = box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
    following.current = near;
    setAway(!near);
  };

  const moment = session.moment.value;
  return (
    <div class="conversation">
      {desk.finding.value && <Find session={session} />}
      <div class="scroller" ref={scroller} onScroll={scrolled} tabIndex={-1} data-scroller>
        <div class="column">
          {moment !== null && session.history !== null ? (
            <MomentView session={session} seq={moment} />
          ) : (
            <>
              <Nothing session={session} />
              {session.earlier.value > 0 && (
                <p class="earlier">
                  <button type="button" class="plain" onClick={() => session.showEarlier()}>
                    Show {session.earlier.value} earlier {session.earlier.value === 1 ? "run" : "runs"}
                  </button>
                </p>
              )}
              <Rows session={session} scroller={scroller} leave={() => (following.current = false)} />
              <Pending session={session} />
              <Questions session={session} />
              <Stalled session={session} />
              <Trouble session={session} />
            </>
          )}
        </div>
      </div>
      {away && moment === null && (
        <button type="button" class="to-end" onClick={toEnd}>
          <Icon name="down" /> Jump to latest
        </button>
      )}
    </div>
  );
}
