// What a screen reader hears: each new message once, when it is whole.
import { useSignalEffect } from "@preact/signals";
import { useRef, useState } from "preact/hooks";
import type { Session } from "./state/session.js";

const LONGEST = 500; // characters that are read out

export function Announcer({ session }: { session: Session }) {
  const heard = useRef<{ session: Session | null; keys: Set<string> }>({ session: null, keys: new Set() });
  const [text, setText] = useState("");
  useSignalEffect(() => {
    const shown = session.shown.value;
    if (shown === null || shown.link.state === "recovering") return;
    const whole = shown.view.items
      .slice(-50)
      .filter((item) => item.kind === "text" && item["complete"] === true && !item.superseded);
    const fresh = heard.current.session !== session; // what was there before is not news
    if (fresh) heard.current = { session, keys: new Set() };
    const news = whole.filter(({ key }) => !heard.current.keys.has(key));
    for (const { key } of news) heard.current.keys.add(key);
    if (!fresh && news.length > 0) setText(news.map((item) => String(item["text"]).slice(0, LONGEST)).join("\n"));
  });
  return (
    <div class="hidden" role="status" aria-live="polite" id="announced">
      {text}
    </div>
  );
}
