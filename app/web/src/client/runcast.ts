// runcast in a browser: a client that loses nothing, and a reducer from envelopes to what a screen shows.
//
//   import { watch } from "/runcast.js";
//   const stop = watch({ base: "/", thread: "thread-7", onChange: (view) => render(view) });
export { type Authorizing, authorizer, channelFor } from "./echo.js";
export { attempt, patched } from "./patch.js";
export { PatchTooLarge } from "./patch_budget.js";
export { Reader, type Verdict } from "./reader.js";
export type {
  Annotation,
  Envelope,
  HeaderRecord,
  Interrupt,
  Item,
  ItemKind,
  ItemState,
  Link,
  OnBusy,
  Operation,
  Queued,
  Run,
  Status,
  Usage,
  View,
  Watching,
} from "./types.js";
export { apply, initial, referred, resolved } from "./view.js";
export { watch } from "./watch.js";
