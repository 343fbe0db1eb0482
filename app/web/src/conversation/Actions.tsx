// What can be done with a message or a run: copy, link, edit and branch, ask again.
import type { Item } from "../client/runcast.js";
import { Copy } from "../parts/Copy.js";
import { Icon } from "../parts/Icon.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";

const str = (value: unknown): string => String(value ?? "");

/** The page's address with one row named in it. */
const linkTo = (key: string): string => `${location.href.split("#")[0]}#${encodeURIComponent(key)}`;

export function UserActions({ session, item }: { session: Session; item: Item }) {
  const desk = useDesk();
  const parent = session.parentOf(str(item.run));
  const text = str(item["text"]);
  // In front of a first message there is nothing to branch off from: it is asked anew in a thread of its own.
  const inside = item["seq"] as number | undefined; // a message that came while the run was active
  const edit = async (): Promise<void> => {
    if (inside !== undefined) desk.show(null, text, await session.originAt(inside - 1));
    else if (parent === null) desk.show(null, text);
    else session.branch(parent, text);
  };
  const label = parent === null || inside !== undefined ? "Edit in a new thread" : "Edit and branch";
  return (
    <div class="actions">
      <Copy text={() => text} label="Copy message" />
      <Copy text={() => linkTo(item.key)} label="Copy link to message" icon="link" />
      {desk.agents.value.length > 0 && session.runs.value.length > 0 && (
        <button type="button" class="icon" onClick={() => void edit()} aria-label={label} title={label}>
          <Icon name="edit" />
        </button>
      )}
    </div>
  );
}

export function AgentActions({ session, item }: { session: Session; item: Item }) {
  const desk = useDesk();
  const run = str(item.run);
  const asked = session.askedOf(run);
  const parent = session.parentOf(run);
  const again = (): void => {
    const text = str(asked?.["text"]);
    const message = (asked?.["content"] as string | undefined) ?? text;
    if (parent !== null) void session.say({ message, agent: desk.chosenAgent, from: parent });
    else void desk.show(null).say({ message, agent: desk.chosenAgent });
  };
  const label = parent === null ? "Ask again in a new thread" : "Ask again on a branch";
  return (
    <div class="actions">
      <Copy text={() => str(item["text"])} label="Copy answer" />
      <Copy text={() => linkTo(item.key)} label="Copy link to answer" icon="link" />
      <Thumbs session={session} message={str(item["id"])} />
      {asked && session.runs.value.length > 0 && desk.agents.value.length > 0 && (
        <button type="button" class="icon" onClick={again} aria-label={label} title={label}>
          <Icon name="again" />
        </button>
      )}
    </div>
  );
}

const THUMBS = [
  ["thumbs_up", "thumb_up", "Good answer"],
  ["thumbs_down", "thumb_down", "Bad answer"],
] as const;

/** What people think of an answer: everybody's thumbs are counted, one's own are pressed. */
function Thumbs({ session, message }: { session: Session; message: string }) {
  const given = Object.values(session.annotations.value).filter(({ payload }) => payload?.["messageId"] === message);
  return THUMBS.map(([type, icon, label]) => {
    const those = given.filter(({ metaType }) => metaType === type);
    const mine = those.some(({ id }) => id === session.thumb(message));
    return (
      <button
        key={type}
        type="button"
        class="icon"
        aria-pressed={mine}
        aria-label={those.length > 0 ? `${label}: ${those.length}` : label}
        title={label}
        onClick={() => void session.rate(message, mine ? null : type)}
      >
        <Icon name={icon} />
        {those.length > 0 && <span class="count">{those.length}</span>}
      </button>
    );
  });
}

export function RunActions({ session, run, itemKey }: { session: Session; run: string; itemKey: string }) {
  const desk = useDesk();
  const state = session.runs.value.find((each) => each.run_id === run)?.status;
  return (
    <div class="actions">
      <Copy text={() => linkTo(itemKey)} label="Copy link to run" icon="link" />
      {state !== undefined && state !== "in_progress" && desk.agents.value.length > 0 && (
        <button
          type="button"
          class="icon"
          onClick={() => session.branch(run)}
          aria-label="Branch from the end of this run"
          title="Branch from the end of this run"
        >
          <Icon name="branch" />
        </button>
      )}
    </div>
  );
}
