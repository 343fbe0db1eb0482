// Time travel: the thread after any of its events, with its state and what changed in it.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Icon } from "../parts/Icon.js";
import { JsonTree } from "../parts/JsonTree.js";
import { Clock } from "../parts/Time.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";
import { type Change, diff } from "./diff.js";

const SPEEDS = [1, 4, 16, 64]; // events a second

export function Past({ session }: { session: Session }) {
  const desk = useDesk();
  const { history } = session;
  const playing = useSignal(false);
  const speed = useSignal(16);
  const against = useSignal(""); // "": the event before
  useEffect(() => history?.follow(), [history]);
  const revision = history?.revision.value ?? 0;
  const entries = history?.entries ?? [];
  const first = entries[0]?.seq ?? 0;
  const head = entries.at(-1)?.seq ?? 0;
  const seq = session.moment.value ?? head;
  const go = (to: number): void => {
    session.moment.value = to >= head ? null : Math.max(first, to);
  };

  useEffect(() => {
    if (!playing.value) return;
    const timer = setInterval(
      () => {
        const at = session.moment.value;
        if (at !== null) go(at + Math.max(1, Math.round(speed.value / 16)));
        if (session.moment.value === null) playing.value = false; // at once: a step back from now is not played over
      },
      1000 / Math.min(16, speed.value),
    );
    return () => clearInterval(timer);
  }, [playing.value, speed.value, revision]);

  const base = against.value === "" ? seq - 1 : Number(against.value);
  const state = useMemo(() => history?.at(seq).state, [history, seq, revision]);
  const changes = useMemo(() => diff(history?.at(base).state, state), [history, state, base]);
  if (history === null) return <p class="quiet">A new thread has no past.</p>;
  if (history.refused.value !== null) return <p class="quiet">{history.refused.value}</p>;
  if (entries.length === 0)
    return <p class="quiet">{history.complete.value ? "Nothing has happened yet." : "Reading the events…"}</p>;

  const entry = entries[history.countAt(seq) - 1];
  const play = (): void => {
    if (session.moment.value === null) session.moment.value = first;
    playing.value = !playing.value;
  };
  return (
    <>
      <label for="seq" class="hidden">
        Event
      </label>
      <input
        id="seq"
        type="range"
        min={first}
        max={head}
        value={seq}
        aria-valuetext={`after event ${seq} of ${head}`}
        onInput={(event) => go(Number(event.currentTarget.value))}
      />
      <div class="bar" role="group" aria-label="Through the past">
        <Button name="first" label="First event" to={() => go(first)} />
        <Button name="back" label="One event back" to={() => go(seq - 1)} />
        <Button name={playing.value ? "pause" : "play"} label={playing.value ? "Pause" : "Play"} to={play} />
        <Button name="next" label="One event on" to={() => go(seq + 1)} />
        <Button name="last" label="Now" to={() => go(head)} />
        <span class="spring" />
        <label for="speed" class="hidden">
          Events a second
        </label>
        <select
          id="speed"
          value={String(speed.value)}
          onChange={(event) => (speed.value = Number(event.currentTarget.value))}
        >
          {SPEEDS.map((each) => (
            <option key={each} value={String(each)}>
              {each} a second
            </option>
          ))}
        </select>
      </div>
      <p class="moment">
        <b class="mono">{seq}</b> of {head}: <code>{entry?.event.type}</code>{" "}
        {entry?.event.timestamp != null && <Clock at={entry.event.timestamp} />}
      </p>
      {desk.agents.value.length > 0 && <From session={session} seq={seq} />}
      <h2>State</h2>
      <JsonTree value={state ?? null} open={2} marks={marksOf(changes)} />
      <div class="bar">
        <h2>Changes</h2>
        <span class="spring" />
        <label for="against">since event</label>
        <input
          id="against"
          type="number"
          min={0}
          max={head}
          placeholder={String(Math.max(0, seq - 1))}
          value={against.value}
          onInput={(event) => (against.value = event.currentTarget.value)}
        />
      </div>
      {changes.length === 0 ? (
        <p class="quiet">None.</p>
      ) : (
        <ul class="changes">
          {changes.map((change) => (
            <ChangeOf key={change.path} change={change} />
          ))}
        </ul>
      )}
    </>
  );
}

/** The way on from this moment: a branch behind the end of a run, from inside a run a thread of its own. */
function From({ session, seq }: { session: Session; seq: number }) {
  const desk = useDesk();
  const ended = session.runEndingAt(seq);
  const fork = async (): Promise<void> => {
    const origin = await session.originAt(seq);
    if (origin !== null) desk.show(null, "", origin);
  };
  return (
    <div id="from-here">
      <button
        type="button"
        class="plain"
        onClick={() => void (ended === undefined ? fork() : session.branch(ended.run_id))}
      >
        <Icon name="branch" /> Branch from here
      </button>
      <p class="quiet">
        {ended === undefined
          ? "Inside a run: the branch is a new thread, which begins with these messages and this state. A step that was under way begins anew."
          : "The end of a run: the branch stays in this thread, and goes on from the framework's own checkpoint where it keeps one."}
      </p>
    </div>
  );
}

function Button({ name, label, to }: { name: Parameters<typeof Icon>[0]["name"]; label: string; to: () => void }) {
  return (
    <button type="button" class="icon" aria-label={label} title={label} onClick={to}>
      <Icon name={name} />
    </button>
  );
}

const marksOf = (changes: Change[]): ReadonlyMap<string, "added" | "changed"> =>
  new Map(changes.flatMap(({ kind, path }) => (kind === "removed" ? [] : [[path, kind] as const])));

const brief = (value: unknown): string => {
  const text = JSON.stringify(value) ?? "";
  return text.length > 300 ? `${text.slice(0, 300)}…` : text;
};

function ChangeOf({ change }: { change: Change }) {
  return (
    <li data-kind={change.kind}>
      <code>{change.path || "/"}</code> <span>{change.kind}</span>
      {"before" in change && <del>{brief(change.before)}</del>}
      {"after" in change && <ins>{brief(change.after)}</ins>}
    </li>
  );
}
