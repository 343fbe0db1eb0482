// What a person fills in for an agent beside the message: its context and its input, by the schemas that it has.
import { signal } from "@preact/signals";
import { blank, check, type Schema } from "../forms/schema.js";
import type { AgentRow, Asks } from "./api.js";
import type { Session } from "./session.js";

const SENT = "forwardedProps."; // where the page can send values

export interface Asked {
  place: string; // below forwardedProps
  schema: Schema;
}

/** What an agent asks for that the page can send. */
export function asked(agent: AgentRow | undefined): Asked[] {
  const all = [agent?.schemas?.input, agent?.schemas?.context].filter((each): each is Asks => each !== undefined);
  return all.flatMap(({ schema, place }) =>
    place?.startsWith(SENT) && Object.keys((schema["properties"] as object | undefined) ?? {}).length > 0
      ? [{ place: place.slice(SENT.length), schema }]
      : [],
  );
}

export class Values {
  readonly given = signal<ReadonlyMap<string, unknown>>(new Map()); // by agent and place
  readonly wrong = signal<ReadonlyMap<string, ReadonlyMap<string, string>>>(new Map());

  of(agent: AgentRow, { place, schema }: Asked): unknown {
    const key = `${agent.name} ${place}`;
    return this.given.value.has(key) ? this.given.value.get(key) : blank(schema, schema);
  }

  change(agent: AgentRow, { place }: Asked, value: unknown): void {
    this.given.value = new Map([...this.given.value, [`${agent.name} ${place}`, value]]);
  }

  /** What goes with a message; null where something has to be filled in or mended first. */
  forwarded(agent: AgentRow | undefined, session: Session): { forwarded?: Record<string, unknown> } | null {
    if (agent === undefined) return {};
    // In a thread that has begun, only what was filled in, or what cannot be left out.
    const wanted = asked(agent).filter(
      (each) =>
        session.thread === null ||
        this.given.value.has(`${agent.name} ${each.place}`) ||
        check(this.of(agent, each) ?? {}, each.schema).size > 0,
    );
    if (wanted.length === 0) return {};
    const found = wanted.map((each) => [each.place, this.of(agent, each)] as const);
    const wrong = new Map(
      wanted
        .map((each, at) => [each.place, check(found[at]?.[1] ?? {}, each.schema)] as const)
        .filter(([, { size }]) => size > 0),
    );
    this.wrong.value = wrong;
    return wrong.size > 0 ? null : { forwarded: Object.fromEntries(found) };
  }
}
