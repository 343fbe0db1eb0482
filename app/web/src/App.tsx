// The page: threads at the left, the conversation in the middle, details at the right.
import { useEffect } from "preact/hooks";
import { Demo } from "./Demo.js";
import { Announcer } from "./Announcer.js";
import { Header } from "./Header.js";
import { Help } from "./Help.js";
import { Composer } from "./conversation/Composer.js";
import { Conversation } from "./conversation/Conversation.js";
import { Waiting } from "./conversation/Waiting.js";
import { Beside, Inspector } from "./inspector/Inspector.js";
import { listen } from "./keys.js";
import { DeskContext } from "./state/context.js";
import type { Desk } from "./state/desk.js";
import { Threads } from "./threads/Threads.js";

export function App({ desk }: { desk: Desk }) {
  useEffect(() => listen(desk), [desk]);
  const session = desk.session.value;
  const beside = session.beside.value !== null;
  return (
    <DeskContext.Provider value={desk}>
      <a class="skip" href="#ask">
        Skip to the message
      </a>
      <Header />
      <div class="columns" data-side={beside || desk.inspecting.value}>
        <Threads />
        {desk.listing.value && <div class="veil" onClick={() => (desk.listing.value = false)} />}
        <main>
          {desk.demo.value && <Demo demo={desk.demo.value} session={session} />}
          <Conversation key={session.thread ?? ""} session={session} />
          <Waiting session={session} />
          <Composer session={session} />
        </main>
        {beside ? <Beside session={session} /> : desk.inspecting.value && <Inspector session={session} />}
      </div>
      <Help />
      <Announcer session={session} />
    </DeskContext.Provider>
  );
}
