// Markdown as elements, made from tokens one by one: nothing in a text becomes markup, whatever it holds.
import type { Token, Tokens } from "marked";
import { type ComponentChildren, h } from "preact";
import { memo } from "preact/compat";
import { useRef, useState } from "preact/hooks";
import { Blocks, levelsOf, safeLink, safePicture } from "./blocks.js";
import { Code } from "./Code.js";
import { Grow } from "./Grow.js";

const HUGE = 200_000; // characters above which a text is shown in part

/** A text in Markdown; with `growing` its last block is still being written. */
export function Markdown({ text, growing = false }: { text: string; growing?: boolean }) {
  const blocks = useRef<Blocks | null>(null);
  const [whole, setWhole] = useState(false);
  blocks.current ??= new Blocks();
  const shown = whole || text.length <= HUGE ? text : text.slice(0, HUGE);
  const found = blocks.current.of(shown).filter(({ token }) => token.type !== "space");
  const levels = levelsOf(
    found.map(({ token }) => (token.type === "heading" ? (token as Tokens.Heading).depth : null)),
  );
  return (
    <div class="markdown">
      {found.map(({ token }, index) => (
        <BlockOf key={index} token={token} level={levels[index]} growing={growing && index === found.length - 1} />
      ))}
      {shown !== text && (
        <button type="button" class="plain" onClick={() => setWhole(true)}>
          Show all {Math.round(text.length / 1000)} kB
        </button>
      )}
    </div>
  );
}

const BlockOf = memo(({ token, growing, level }: { token: Token; growing: boolean; level?: number | undefined }) => (
  <>{block(token, growing, level)}</>
));

function block(token: Token, growing: boolean, level?: number): ComponentChildren {
  switch (token.type) {
    case "heading": // one inside a list or a quotation is no part of the page's outline
      return level === undefined ? (
        <p>
          <strong>{inline(token.tokens)}</strong>
        </p>
      ) : (
        h(`h${level}`, null, inline(token.tokens))
      );
    case "paragraph":
      return <p>{inline(token.tokens)}</p>;
    case "text":
      return token.tokens ? inline(token.tokens) : <Grow text={token["text"] as string} />;
    case "code":
      return <Code code={token["text"] as string} language={languageOf(token as Tokens.Code)} growing={growing} />;
    case "blockquote":
      return (
        <blockquote>
          {(token.tokens ?? []).map((each, index) => (
            <BlockOf key={index} token={each} growing={growing} />
          ))}
        </blockquote>
      );
    case "list":
      return list(token as Tokens.List, growing);
    case "table":
      return table(token as Tokens.Table);
    case "hr":
      return <hr />;
    case "space":
    case "def":
      return null;
    default: // HTML too
      return (
        <p>
          <Grow text={token.raw} />
        </p>
      );
  }
}

const languageOf = ({ lang }: Tokens.Code): string => (lang ?? "").trim().split(/\s/)[0]?.toLowerCase() ?? "";

function list({ ordered, start, items }: Tokens.List, growing: boolean): ComponentChildren {
  const rows = items.map((item, index) => (
    <li key={index} class={item.task ? "task" : undefined}>
      {item.task && (
        <input type="checkbox" checked={item.checked ?? false} disabled aria-label={item.checked ? "done" : "to do"} />
      )}
      {item.tokens
        .filter((each) => (each.type as string) !== "checkbox")
        .map((each, at) => (
          <BlockOf key={at} token={each} growing={growing} />
        ))}
    </li>
  ));
  return ordered ? <ol start={Number(start) || 1}>{rows}</ol> : <ul>{rows}</ul>;
}

function table({ header, align, rows }: Tokens.Table): ComponentChildren {
  const cell = (tag: "th" | "td") => (each: Tokens.TableCell, index: number) =>
    h(tag, { key: index, class: align[index] ? `to-${align[index]}` : undefined }, inline(each.tokens));
  return (
    <div class="table" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{header.map(cell("th"))}</tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={index}>{row.map(cell("td"))}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function inline(tokens: Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => {
    switch (token.type) {
      case "strong":
        return <strong key={index}>{inline(token.tokens)}</strong>;
      case "em":
        return <em key={index}>{inline(token.tokens)}</em>;
      case "del":
        return <del key={index}>{inline(token.tokens)}</del>;
      case "codespan":
        return <code key={index}>{token["text"]}</code>;
      case "br":
        return <br key={index} />;
      case "link":
        return <Anchor key={index} token={token as Tokens.Link} />;
      case "image":
        return <Picture key={index} token={token as Tokens.Image} />;
      case "escape":
        return token["text"] as string;
      case "text":
        return token.tokens ? inline(token.tokens) : <Grow key={index} text={decoded(token["text"] as string)} />;
      default: // HTML too
        return <Grow key={index} text={token.raw} />;
    }
  });
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" };

/** The characters that a text names by their entities. */
function decoded(text: string): string {
  return text.includes("&")
    ? text.replace(/&(amp|lt|gt|quot|apos|nbsp);/g, (_, name: string) => ENTITIES[name] ?? "")
    : text;
}

function Anchor({ token }: { token: Tokens.Link }) {
  const href = safeLink(token.href);
  if (href === null) return <>{token.raw}</>;
  return (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {inline(token.tokens)}
    </a>
  );
}

/** A picture of the page's own origin; any other is a link, so that reading a thread asks no foreign server. */
function Picture({ token }: { token: Tokens.Image }) {
  const source = safePicture(token.href, location.href);
  if (source !== null) return <img src={source} alt={token.text} loading="lazy" />;
  const href = safeLink(token.href);
  return href === null ? (
    <>{token.raw}</>
  ) : (
    <a href={href} target="_blank" rel="noopener noreferrer nofollow">
      {token.text || "picture"} (picture elsewhere)
    </a>
  );
}
