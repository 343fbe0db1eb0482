import { expect, test } from "vitest";
import { Conversation } from "../src/fold/conversation.js";
import type { Entry } from "../src/fold/events.js";
import type { Api, EventPage } from "../src/state/api.js";
import { History } from "../src/state/history.js";

const entries: Entry[] = [{ seq: 1, event: { type: "RUN_STARTED", threadId: "t", runId: "r" } }];
for (let seq = 2; seq <= 2600; seq += 1) {
  const event =
    seq % 100 === 2
      ? { type: "TEXT_MESSAGE_START", messageId: `m${Math.floor(seq / 100)}` }
      : { type: "TEXT_MESSAGE_CONTENT", messageId: `m${Math.floor((seq - 2) / 100)}`, delta: `${seq} ` };
  entries.push({ seq, event });
}

/** A server that has these events, and answers page by page. */
function served(all: Entry[], epoch = () => "e"): { api: Api; asked: number[] } {
  const asked: number[] = [];
  const events = async (_: string, after: number, limit: number, known: string): Promise<EventPage> => {
    asked.push(after);
    const recovered = known === "" || known === epoch();
    const rest = recovered ? all.filter(({ seq }) => seq > after) : [];
    const head = all.at(-1)?.seq ?? 0;
    return { recovered, epoch: epoch(), head, more: rest.length > limit, events: rest.slice(0, limit) };
  };
  return { api: { events } as unknown as Api, asked };
}

test("any moment is what its events fold into, in whatever order moments are asked for", async () => {
  const { api, asked } = served(entries);
  const history = new History(api, "t");
  await history.refresh();
  expect(asked).toEqual([0, 1000, 2000]);
  expect(history.head).toBe(2600);
  for (const seq of [2600, 1, 1700, 501, 500, 499, 2599, 0]) {
    const whole = new Conversation();
    for (const { event } of entries.slice(0, seq)) whole.feed(event);
    expect(history.at(seq)).toEqual(whole.moment());
  }
});

test("a moment that was looked at does not change when later ones are", async () => {
  const history = new History(served(entries).api, "t");
  await history.refresh();
  const moment = structuredClone(history.at(700));
  history.at(2600);
  expect(history.at(700)).toEqual(moment);
});

test("a thread that was deleted and made again is read anew", async () => {
  let epoch = "one";
  const all = entries.slice(0, 5);
  const history = new History(served(all, () => epoch).api, "t");
  await history.refresh();
  epoch = "two";
  all.splice(0, 5, ...entries.slice(0, 2));
  await history.refresh();
  expect(history.entries.map(({ seq }) => seq)).toEqual([1, 2]);
});
