import { expect, test } from "vitest";
import { attempt, PatchTooLarge, patched } from "../src/client/runcast.js";

test.each([
  ["add", { a: 1 }, [{ op: "add", path: "/b", value: 2 }], { a: 1, b: 2 }],
  ["append", [1], [{ op: "add", path: "/-", value: 2 }], [1, 2]],
  ["insert", [1, 3], [{ op: "add", path: "/1", value: 2 }], [1, 2, 3]],
  ["remove", { a: 1, b: 2 }, [{ op: "remove", path: "/a" }], { b: 2 }],
  ["replace the root", { a: 1 }, [{ op: "replace", path: "", value: 3 }], 3],
  ["move", { a: { b: 1 } }, [{ op: "move", from: "/a/b", path: "/c" }], { a: {}, c: 1 }],
  ["copy", { a: [1] }, [{ op: "copy", from: "/a", path: "/b" }], { a: [1], b: [1] }],
  ["escaped", { "x/y": { "~": 1 } }, [{ op: "replace", path: "/x~1y/~0", value: 2 }], { "x/y": { "~": 2 } }],
  [
    "test that holds",
    { a: 1 },
    [
      { op: "test", path: "/a", value: 1 },
      { op: "add", path: "/b", value: 2 },
    ],
    { a: 1, b: 2 },
  ],
])("%s", (_, document, operations, expected) => {
  const before = structuredClone(document);
  expect(patched(document, operations)).toEqual(expected);
  expect(document).toEqual(before);
});

test.each([
  ["an index past the end", [1], [{ op: "add", path: "/5", value: 2 }]],
  ["a name for an index", [1], [{ op: "add", path: "/x", value: 2 }]],
  [
    "something that is not there",
    { a: 1 },
    [
      { op: "add", path: "/b", value: 1 },
      { op: "replace", path: "/c", value: 2 },
    ],
  ],
  [
    "a test that fails",
    { a: 1 },
    [
      { op: "test", path: "/a", value: 2 },
      { op: "add", path: "/b", value: 2 },
    ],
  ],
  ["a path into a text", { a: "text" }, [{ op: "add", path: "/a/b", value: 2 }]],
])("%s changes nothing", (_, document, operations) => {
  expect(patched(document, operations)).toBe(document);
});

const twice = (n: number): unknown[] => (n === 0 ? [1] : [twice(n - 1), twice(n - 1)]);

test.each([
  [
    "an object",
    { a: { b: "x".repeat(1_000) } },
    Array.from({ length: 60 }, (_, n) => ({ op: "copy", from: "/a", path: `/a/x${n}` })),
  ],
  ["a list", { a: [1] }, Array.from({ length: 60 }, () => ({ op: "copy", from: "/a", path: "/a/-" }))],
  [
    "many copies of much",
    { a: twice(12) },
    Array.from({ length: 60 }, (_, n) => ({ op: "copy", from: "/a", path: `/${n}` })),
  ],
])("%s that doubles is refused before it is made", (_, document, operations) => {
  const before = performance.now();
  const result = attempt(document, operations);
  expect(result.error).toBeInstanceOf(PatchTooLarge);
  expect(result.value).toBe(document);
  expect(performance.now() - before).toBeLessThan(2_000);
});

test("a document stops growing, however small the patches are", () => {
  let document: unknown = { a: "x".repeat(1_000_000) };
  let error: unknown = null;
  for (let n = 0; n < 100 && error === null; n++)
    ({ value: document, error } = attempt(document, [{ op: "copy", from: "/a", path: `/${n}` }]));
  expect(error).toBeInstanceOf(PatchTooLarge);
});

test("a document does not sink without end", () => {
  const sink = [
    { op: "move", from: "/a", path: "/b/a" },
    { op: "move", from: "/b", path: "/a" },
    { op: "add", path: "/b", value: {} },
  ];
  expect(attempt({ a: {}, b: {} }, Array.from({ length: 1_000 }, () => sink).flat()).error).toBeInstanceOf(
    PatchTooLarge,
  );
});

test("a written value is not shared with its operation", () => {
  const value = { n: 1 };
  const document = patched({}, [{ op: "add", path: "/a", value }]);
  value.n = 2;
  expect(document).toEqual({ a: { n: 1 } });
});
