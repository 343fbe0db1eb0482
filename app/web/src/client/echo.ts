// For Laravel Echo and pusher-js: the channel of a thread, and an authorizer that sends the reader's position along.
import type { Reader } from "./reader.js";
import type { HeaderRecord } from "./types.js";

/**
 * The channel of a thread, as the hub names it: the id is one segment, in which letters, digits and `-_@` stand for
 * themselves and every other byte of its UTF-8 is `=` and two hex digits.
 */
export function channelFor(thread: string): string {
  const plain = /[-a-zA-Z0-9_@]/;
  const name = Array.from(new TextEncoder().encode(thread), (byte) => {
    const character = String.fromCharCode(byte);
    return plain.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }).join("");
  if (name === "" || name.length > 186)
    throw new RangeError("no channel name holds this thread id; use watch() instead");
  return `agent.${name}`;
}

export interface Authorizing {
  endpoint?: string;
  headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>);
  positions?: Map<string, Reader>;
}

/**
 * For Laravel Echo or pusher-js: an authorizer that sends the position along, so that the hub replays what was missed.
 *
 *   const positions = new Map();            // channel name -> Reader
 *   new Pusher(key, { …, channelAuthorization: { customHandler: authorizer({ endpoint, positions }) } });
 */
export function authorizer({ endpoint = "/broadcasting/auth", headers = {}, positions = new Map() }: Authorizing) {
  return async (
    { socketId, channelName }: { socketId: string; channelName: string },
    callback: (error: Error | null, answer: unknown) => void,
  ): Promise<void> => {
    const form = new URLSearchParams({ socket_id: socketId, channel_name: channelName });
    const reader = positions.get(channelName);
    if (reader?.epoch != null) {
      form.set("epoch", reader.epoch);
      form.set("offset", String(reader.last ?? 0));
    }
    try {
      const own = typeof headers === "function" ? await headers() : headers;
      const response = await fetch(endpoint, { method: "POST", headers: own, body: form });
      if (!response.ok) throw new Error(`the auth endpoint answered ${response.status}`);
      callback(null, await response.json());
    } catch (error) {
      callback(error instanceof Error ? error : new Error(String(error)), null);
    }
  };
}
