// Colours for code in a few languages, as a tree of words: no markup is made. Loaded when the first code is drawn.
import bash from "highlight.js/lib/languages/bash";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import python from "highlight.js/lib/languages/python";
import sql from "highlight.js/lib/languages/sql";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { createLowlight } from "lowlight";

const lowlight = createLowlight({ bash, css, diff, javascript, json, python, sql, typescript, xml, yaml });

export type Words = (string | { scope: string; words: Words })[];

interface Node {
  type: string;
  value?: string;
  properties?: { className?: string[] };
  children?: Node[];
}

/** The code in coloured words; null for a language that is not known here. */
export function highlight(code: string, language: string): Words | null {
  if (!lowlight.registered(language)) return null;
  return words((lowlight.highlight(language, code) as Node).children ?? []);
}

function words(nodes: Node[]): Words {
  return nodes.map((node) =>
    node.type === "text"
      ? (node.value ?? "")
      : { scope: (node.properties?.className ?? []).join(" "), words: words(node.children ?? []) },
  );
}
