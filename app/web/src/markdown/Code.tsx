// A block of code: its language, a button that copies it, and colours once it has been written to its end.
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Copy } from "../parts/Copy.js";
import { Grow } from "./Grow.js";
import type { Words } from "./highlight.js";

const LONGEST = 50_000; // characters that are coloured

export function Code({ code, language, growing }: { code: string; language: string; growing: boolean }) {
  const [words, setWords] = useState<Words | null>(null);
  useEffect(() => {
    if (growing || language === "" || code.length > LONGEST) return setWords(null);
    let current = true;
    void import("./highlight.js").then(
      ({ highlight }) => current && setWords(highlight(code, language)),
      () => current && setWords(null), // offline, or the server was renewed: code is read without colours
    );
    return () => {
      current = false;
    };
  }, [code, language, growing]);
  return (
    <figure class="code">
      <figcaption>
        <span>{language || "text"}</span>
        <Copy text={() => code} label="Copy code" />
      </figcaption>
      <pre tabIndex={0} aria-label={`Code, ${language || "text"}`}>
        <code>{words === null ? <Grow text={code} /> : coloured(words)}</code>
      </pre>
    </figure>
  );
}

function coloured(words: Words): (string | VNode)[] {
  return words.map((word, index) =>
    typeof word === "string" ? (
      word
    ) : (
      <span key={index} class={word.scope}>
        {coloured(word.words)}
      </span>
    ),
  );
}
