// The conversation: rows in order, drawn where they are in sight, with the newest in view unless a person scrolled up.
import { useSignalEffect } from "@preact/signals";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Icon } from "../parts/Icon.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";
import { number } from "../state/words.js";
import { Find } from "./Find.js";
import { MessageOf, MomentView } from "./MomentView.js";
import { Nothing } from "./Nothing.js";
import { Stalled, Trouble } from "./Banners.js";
import { Pending } from "./Pending.js";
import { Questions } from "./Questions.js";
import { Rows } from "./Rows.js";

/** The newest messages of a long thread, while the rest of it is read. */
function Short({ session }: { session: Session }) {
  const preview = session.preview.value;
  if (preview === null) return null;
  return (
    <>
      <p class="earlier quiet" role="status">
        Reading {number(preview.events)} events; the newest messages are here already.
        <progress max={preview.events} value={session.shown.value?.link.last ?? 0} aria-label="Events that were read" />
      </p>
      <ol class="rows" id="preview" aria-label="The newest messages">
        {preview.messages.map((message) => (
          <li key={message.id} data-kind={message.role}>
            <MessageOf message={message} />
          </li>
        ))}
      </ol>
    </>
  );
}

const NEAR = 80; // pixels from the end within which the newest stays in view

export function Conversation({ session }: { session: Session }) {
  const scroller = useRef<HTMLDivElement>(null);
  const following = useRef(true);
  const top = useRef(0);
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
    // Only a person moves up; a narrower window makes the conversation longer below, and scrolls too.
    following.current = near || (following.current && box.scrollTop >= top.current);
    top.current = box.scrollTop;
    setAway(!following.current);
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
              <Short session={session} />
              {session.earlier.value > 0 && (
                <p class="earlier">
                  <button type="button" class="plain" onClick={() => session.showEarlier()}>
                    Show {session.earlier.value} earlier {session.earlier.value === 1 ? "run" : "runs"}
                  </button>
                </p>
              )}
              {session.preview.value === null && (
                <Rows session={session} scroller={scroller} leave={() => (following.current = false)} />
              )}
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
