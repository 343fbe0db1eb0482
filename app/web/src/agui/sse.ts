// Server-sent events out of text that arrives in any pieces. Pure: knows the format, not what it carries.

/** One block of a stream: its data, and the id that stood in it, if there was one. */
export interface Frame {
  id: string | null;
  data: string | null;
}

/** A reader of one response. A block that is not complete yet stays here, and is lost with the response. */
export class SseReader {
  private rest = "";
  private id: string | null = null;
  private data: string[] = [];

  /** The blocks that are complete with this text. Comments and other fields are passed over. */
  feed(text: string): Frame[] {
    const frames: Frame[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
      if (line === "") frames.push(...this.block());
      else if (field === "id") this.id = value ?? "";
      else if (field === "data") this.data.push(value ?? "");
    }
    return frames;
  }

  private block(): Frame[] {
    const { id, data } = this;
    this.id = null;
    this.data = [];
    return id === null && data.length === 0 ? [] : [{ id, data: data.length > 0 ? data.join("\n") : null }];
  }
}
