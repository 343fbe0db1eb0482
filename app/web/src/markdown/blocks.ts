// A Markdown text as blocks that stay while it grows: only the last ones are read again when words are added.
//
// What marked reads is a tree of tokens, and never markup: HTML in a text is a token like any other, drawn as text.
import { Lexer, type Token } from "marked";

export interface Block {
  raw: string;
  token: Token;
}

const REREAD = 2; // blocks at the end that more words may change
const REFERENCE = /^ {0,3}\[[^\]]+\]:/m; // a link's address that is written somewhere else: any block may name it

export class Blocks {
  private text = "";
  private blocks: Block[] = [];

  /** The blocks of this text. A block that did not change is the same object as before. */
  of(text: string): readonly Block[] {
    if (text === this.text) return this.blocks;
    const grows = this.text !== "" && text.startsWith(this.text) && !REFERENCE.test(text);
    let kept = grows ? this.blocks.slice(0, Math.max(0, this.blocks.length - REREAD)) : [];
    let offset = kept.reduce((sum, { raw }) => sum + raw.length, 0);
    if (text.slice(0, offset) !== kept.map(({ raw }) => raw).join("")) [kept, offset] = [[], 0]; // marked rewrote a tab or a line's end
    const former = new Map(this.blocks.slice(kept.length).map((block) => [block.raw, block]));
    const read = lex(text.slice(offset)).map((token) => former.get(token.raw) ?? { raw: token.raw, token });
    this.text = text;
    this.blocks = [...kept, ...read];
    return this.blocks;
  }
}

export const lex = (text: string): Token[] => Lexer.lex(text, { gfm: true, breaks: true });

/** The levels of a text's headings below the page's own, none of which is left out on the way down; null is no heading. */
export function levelsOf(depths: readonly (number | null)[]): (number | undefined)[] {
  const used = [...new Set(depths.filter((each) => each !== null))].sort((one, other) => one - other);
  let before = 1;
  return depths.map((depth) => {
    if (depth === null) return undefined;
    before = Math.min(6, used.indexOf(depth) + 2, before + 1);
    return before;
  });
}

const SAFE = /^(?:https?|mailto|tel):/i;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp|avif);base64,[a-z0-9+/=]*$/i;

/** Where a link leads, if it leads to a place and runs nothing; null else. */
export function safeLink(href: string): string | null {
  const clean = [...href].filter((each) => each > " " && each !== "\u007f").join("");
  if (SAFE.test(clean)) return clean;
  return /^(?:[#?/]|\.{1,2}\/)/.test(clean) && !clean.startsWith("//") ? clean : null;
}

/** Where a picture is fetched from, if it is one of the page's own origin or stands in the text itself; null else. */
export function safePicture(href: string, base: string): string | null {
  if (PICTURE.test(href)) return href;
  try {
    const url = new URL(href, base);
    return url.origin === new URL(base).origin && /^https?:$/.test(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}
