// Text that grows keeps its node, so that a selection in it stays.
import { useLayoutEffect, useRef } from "preact/hooks";

export function Grow({ text }: { text: string }) {
  const element = useRef<HTMLSpanElement>(null);
  useLayoutEffect(() => {
    const span = element.current;
    if (span === null) return;
    const node = span.firstChild as Text | null;
    if (node === null) span.append(text);
    else if (text.startsWith(node.data)) node.appendData(text.slice(node.data.length));
    else node.data = text;
  }, [text]);
  return <span ref={element} />;
}
