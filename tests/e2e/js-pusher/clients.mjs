// Stock laravel-echo and pusher-js, driven over stdin and reporting on stdout, one JSON object a line.
//
//   {"op":"open","client":"a", ...}       {"op":"join","client":"a","channel":"agent.s1","kind":"private"}
//   {"op":"whisper"|"leave"|"close"|"send"|"signin", ...}
//
// Every report is {"client", "what", ...}. Nothing of the libraries is changed; recovery is a custom authorizer.

import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import Echo from "laravel-echo";

const Pusher = createRequire(import.meta.url)("pusher-js");
const clients = new Map();
const say = (client, what, more = {}) => process.stdout.write(JSON.stringify({ client, what, ...more }) + "\n");

// Posts the reader's position with the question; the answer's channel_data goes back byte for byte.
const recovering = (endpoint, headers, positions) => ({ channelName, socketId }, done) => {
  const fields = { socket_id: socketId, channel_name: channelName, ...positions.get(channelName) };
  fetch(endpoint, { method: "POST", headers, body: new URLSearchParams(fields), redirect: "error" })
    .then(async (answer) => {
      if (!answer.ok) throw Object.assign(new Error(`auth said ${answer.status}`), { status: answer.status });
      done(null, await answer.json());
    })
    .catch((error) => done(error, null));
};

function open({ client, port, http, path = "", key = "app-key", recover = false, headers = {}, endpoint, ...more }) {
  const positions = new Map();
  const authEndpoint = endpoint ?? `http://127.0.0.1:${http}${path}/broadcasting/auth`;
  const authorizer = recover ? { channelAuthorization: { customHandler: recovering(authEndpoint, headers, positions) } } : {};
  const echo = new Echo({
    broadcaster: "reverb", key, wsHost: "127.0.0.1", wsPort: port, wsPath: path, forceTLS: false,
    enabledTransports: ["ws"], Pusher, authEndpoint, auth: { headers }, ...authorizer, ...more,
  });
  const connection = echo.connector.pusher.connection;
  connection.bind("state_change", ({ current }) => say(client, "state", { state: current, socket: connection.socket_id }));
  connection.bind("error", (error) => say(client, "error", { error: error?.error?.data ?? error?.data ?? String(error?.type ?? error) }));
  connection.bind("message", (frame) => say(client, "frame", { frame }));
  clients.set(client, { echo, positions, joined: new Map() });
}

function join({ client, channel, kind = "private", listen }) {
  const { echo, positions, joined } = clients.get(client);
  const it = kind === "private" ? echo.private(channel) : kind === "presence" ? echo.join(channel) : echo.channel(channel);
  joined.set(channel, it);
  it.on("pusher:subscription_succeeded", (data) => {
    const recovery = data?.recovery;
    if (recovery && !recovery.recovered) positions.set(it.name, { epoch: recovery.epoch, offset: recovery.offset });
    say(client, "subscribed", { channel: it.name, recovery });
  });
  it.error((error) => say(client, "refused", { channel: it.name, error: { ...error } }));
  it.on("pusher:cache_miss", () => say(client, "cache_miss", { channel: it.name }));
  if (kind === "presence") {
    it.here((users) => say(client, "here", { channel: it.name, users }));
    it.joining((user) => say(client, "joining", { channel: it.name, user }));
    it.leaving((user) => say(client, "leaving", { channel: it.name, user }));
  }
  if (kind !== "channel") it.listenForWhisper("typing", (data) => say(client, "whisper", { channel: it.name, data }));
  const report = (name) => (data) => {
    if (data && typeof data.seq === "number") positions.set(it.name, { epoch: data.epoch, offset: data.seq });
    say(client, "event", { channel: it.name, name, data });
  };
  if (listen) it.listen(listen, report(listen));
  else it.listenToAll((name, data) => report(name)(data));
}

const ops = {
  open,
  join,
  whisper: ({ client, channel, data }) => clients.get(client).joined.get(channel).whisper("typing", data),
  leave: ({ client, channel }) => clients.get(client).echo.leave(channel),
  send: ({ client, event, data, channel }) => clients.get(client).echo.connector.pusher.send_event(event, data, channel),
  signin: ({ client }) => clients.get(client).echo.connector.pusher.signin(),
  place: ({ client, channel, position }) => clients.get(client).positions.set(channel, position),
  close: ({ client }) => { clients.get(client).echo.disconnect(); clients.delete(client); },
};

process.on("uncaughtException", (error) => say("", "crash", { error: String(error?.stack ?? error) }));
createInterface({ input: process.stdin }).on("line", (line) => {
  const request = JSON.parse(line);
  try { ops[request.op](request); } catch (error) { say(request.client ?? "", "crash", { error: String(error?.stack ?? error) }); }
}).on("close", () => process.exit(0));
say("", "ready");
