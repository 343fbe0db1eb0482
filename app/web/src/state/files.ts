// Files that go with a message: which an agent takes, how large they may be, and the parts of the message they become.
import type { AgentRow, Part } from "./api.js";

export const LARGEST = 5_000_000; // bytes of all files of a message: a body has at most 8 MiB, and base64 a third more

type Kind = "image" | "audio" | "video" | "document";
const KINDS: [Kind, string, (type: string) => boolean][] = [
  ["image", "images", (type) => type.startsWith("image/")],
  ["audio", "audio", (type) => type.startsWith("audio/")],
  ["video", "video", (type) => type.startsWith("video/")],
  ["document", "PDF", (type) => type === "application/pdf"],
];
const CAPABILITY: Record<Kind, string> = { image: "image", audio: "audio", video: "video", document: "pdf" };

/** The kinds of files an agent takes, by its capabilities; `any` for files of every kind. */
export function taken(agent: AgentRow | undefined): { kinds: Kind[]; any: boolean } {
  const input = agent?.capabilities?.multimodal?.input ?? {};
  return {
    kinds: KINDS.flatMap(([kind]) => (input[CAPABILITY[kind]] === true ? [kind] : [])),
    any: input["file"] === true,
  };
}

/** Whether an agent takes files at all. */
export function takes(agent: AgentRow | undefined): boolean {
  const { kinds, any } = taken(agent);
  return any || kinds.length > 0;
}

/** What is chosen in a file dialog, as its `accept`. */
export function accepted(agent: AgentRow | undefined): string {
  const { kinds, any } = taken(agent);
  return any ? "" : kinds.map((kind) => (kind === "document" ? "application/pdf" : `${kind}/*`)).join(",");
}

const kindOf = (type: string): Kind | undefined => KINDS.find(([, , is]) => is(type))?.[0];

/** Why a file cannot go with the message; null where it can. `held`: bytes of those that go already. */
export function refusal(file: { name: string; type: string; size: number }, agent: AgentRow | undefined, held: number) {
  const { kinds, any } = taken(agent);
  const kind = kindOf(file.type);
  if (!any && (kind === undefined || !kinds.includes(kind))) {
    const names = KINDS.flatMap(([each, name]) => (kinds.includes(each) ? [name] : []));
    return `${file.name} was left out: this agent takes ${names.join(", ") || "no files"}.`;
  }
  if (held + file.size > LARGEST) return `${file.name} was left out: files of a message have at most 5 MB together.`;
  return null;
}

/** A file as part of a message. */
export async function partOf(file: File): Promise<Part> {
  const url = await new Promise<string>((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result as string);
    reader.onerror = () => failed(reader.error ?? new Error("the file cannot be read"));
    reader.readAsDataURL(file);
  });
  const mimeType = file.type || "application/octet-stream";
  const source = { type: "data", value: url.slice(url.indexOf(",") + 1), mimeType } as const;
  return { type: kindOf(file.type) ?? "document", source, metadata: { filename: file.name } };
}
