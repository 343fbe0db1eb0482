// A client's messages, in its order. A message that changes is another object; an id or a call is found at once.
import type { Message, ToolCall } from "./events.js";

/** A place in the transcript. A place is not a message: another message may come to stand there. */
export interface Place {
  message: Message;
}

export class Transcript {
  private places: Place[] = [];
  private ids = new Map<string, Place>(); // the first place of each id
  private calls = new Map<string, Place>(); // the first place that holds each call

  /** The messages as they stand. */
  messages(): Message[] {
    return this.places.map(({ message }) => message);
  }

  static of(messages: Message[]): Transcript {
    const transcript = new Transcript();
    for (const message of messages) transcript.append(message);
    return transcript;
  }

  find(id: string): Place | undefined {
    return this.ids.get(id);
  }

  /** The place that holds this tool call. */
  holder(callId: string): Place | undefined {
    return this.calls.get(callId);
  }

  append(message: Message): Place {
    const place = { message };
    this.places.push(place);
    this.index(place);
    return place;
  }

  private index(place: Place): void {
    if (!this.ids.has(place.message.id)) this.ids.set(place.message.id, place);
    for (const { id } of place.message.toolCalls ?? []) if (!this.calls.has(id)) this.calls.set(id, place);
  }

  addCall(place: Place, call: ToolCall): void {
    if (!this.calls.has(call.id)) this.calls.set(call.id, place);
    place.message = { ...place.message, toolCalls: [...(place.message.toolCalls ?? []), call] };
  }

  /** Another version of a call, in the message that holds it. */
  changeCall(callId: string, change: (call: ToolCall) => ToolCall): boolean {
    const place = this.calls.get(callId);
    if (place === undefined) return false;
    let first = true;
    const toolCalls = (place.message.toolCalls ?? []).map((call) => {
      if (call.id !== callId || !first) return call;
      first = false;
      return change(call);
    });
    place.message = { ...place.message, toolCalls };
    return true;
  }

  /** A tool result: behind the message that holds its call and the results already there, else at the end. */
  insertResult(callId: string, message: Message): void {
    const owner = this.calls.get(callId);
    if (owner === undefined) {
      this.append(message);
      return;
    }
    let at = this.places.lastIndexOf(owner) + 1;
    while (this.places[at]?.message.role === "tool") at += 1;
    const place = { message };
    this.places.splice(at, 0, place);
    const known = this.ids.get(message.id);
    if (known === undefined || this.places.indexOf(known) > at) this.ids.set(message.id, place);
  }

  /** Put another message with the same id in this place. */
  replace(place: Place, message: Message): void {
    const held = (place.message.toolCalls ?? []).length > 0;
    place.message = message;
    if (held) this.restart(this.messages());
  }

  /** A restated message takes its former place, the others follow at the end; what is left out goes, unless `keep`. */
  restate(messages: Message[], keep: (message: Message) => boolean): void {
    const stated = new Map(messages.map((message) => [message.id, message]));
    const kept = this.messages()
      .filter((message) => stated.has(message.id) || keep(message))
      .map((message) => stated.get(message.id) ?? message);
    const held = new Set(kept.map(({ id }) => id));
    this.restart([...kept, ...messages.filter(({ id }) => !held.has(id))]);
  }

  private restart(messages: Message[]): void {
    this.places = [];
    this.ids = new Map();
    this.calls = new Map();
    for (const message of messages) this.append(message);
  }
}
