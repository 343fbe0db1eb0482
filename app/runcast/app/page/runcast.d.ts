export { type Authorizing, authorizer, channelFor } from "./echo.js";
export { attempt, patched } from "./patch.js";
export { PatchTooLarge } from "./patch_budget.js";
export { Reader, type Verdict } from "./reader.js";
export type { Envelope, HeaderRecord, Interrupt, Item, ItemKind, ItemState, Link, Operation, Run, Status, Usage, View, Watching, } from "./types.js";
export { apply, initial } from "./view.js";
export { watch } from "./watch.js";
