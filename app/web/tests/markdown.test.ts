import { expect, test } from "vitest";
import { Blocks, levelsOf, lex, safeLink, safePicture } from "../src/markdown/blocks.js";

const TEXTS = [
  "# Report\n\nHere is **bold** and `code`.\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n- one\n- two\n\n  more\n- three\n\nend",
  "```python\ndef f():\n    return 1\n```\n\nafter\n\n> quoted\n> more\n\n1. a\n2. b\n   - c\n",
  "para\nstill\n\nsetext\n======\n\ntext with <b>html</b>\n\n<div>\nblock\n</div>\n\n---\n\n~~gone~~ ![pic](x.png)",
  "[a]: https://example.com\n\nsee [a] and https://example.com/x\n\n* * *\n\n    indented code\n\nlast",
];

test.each(TEXTS)("a text that grows is read as one that is whole, at every cut: %#", (text) => {
  const blocks = new Blocks();
  for (let end = 1; end <= text.length; end += 1) {
    const shown = text.slice(0, end);
    expect(
      blocks
        .of(shown)
        .map(({ raw }) => raw)
        .join("|"),
    ).toBe(
      lex(shown)
        .map(({ raw }) => raw)
        .join("|"),
    );
    expect(JSON.stringify(blocks.of(shown).map(({ token }) => token))).toBe(JSON.stringify(lex(shown)));
  }
});

test("blocks that are complete stay the same objects", () => {
  const blocks = new Blocks();
  const [first] = blocks.of("one\n\ntwo\n\nthree");
  expect(blocks.of("one\n\ntwo\n\nthree and more")[0]).toBe(first);
});

test("a long text is read in time that grows with what is added", () => {
  const blocks = new Blocks();
  let text = "";
  for (let n = 0; n < 3000; n += 1) {
    text += n % 10 === 9 ? "word\n\n" : "word ";
    blocks.of(text);
  }
  expect(blocks.of(text).length).toBeGreaterThan(500);
});

test.each([
  ["https://example.com/a?b=c#d", true],
  ["mailto:a@example.com", true],
  ["#part", true],
  ["/threads", true],
  ["../up", true],
  ["javascript:alert(1)", false],
  ["JaVaScRiPt:alert(1)", false],
  ["java\nscript:alert(1)", false],
  ["\u0001javascript:alert(1)", false],
  ["data:text/html,<script>", false],
  ["vbscript:x", false],
  ["//example.com", false],
  ["blob:https://x", false],
])("a link to %s is one: %s", (href, safe) => {
  expect(safeLink(href) !== null).toBe(safe);
});

test.each([
  ["/picture.png", true],
  ["https://here.test/a.png", true],
  ["https://elsewhere.test/a.png", false],
  ["//elsewhere.test/a.png", false],
  ["data:image/png;base64,AAAA", true],
  ["data:image/svg+xml;base64,AAAA", false],
  ["data:text/html;base64,AAAA", false],
  ["javascript:alert(1)", false],
])("a picture at %s is drawn: %s", (href, drawn) => {
  expect(safePicture(href, "https://here.test/page/") !== null).toBe(drawn);
});

test("headings go down one level at a time, whatever a text begins with", () => {
  expect(levelsOf([1, null, 2, 3])).toEqual([2, undefined, 3, 4]);
  expect(levelsOf([4, 1, 4])).toEqual([2, 2, 3]);
  expect(levelsOf([null])).toEqual([undefined]);
});
