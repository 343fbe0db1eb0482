// A button that copies a text, and reports what came of it. A page that came over plain http from elsewhere has no
// clipboard.
import { useState } from "preact/hooks";
import { Icon, type IconName } from "./Icon.js";

export async function copied(text: string): Promise<boolean> {
  return (
    (await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )) ?? false
  );
}

export function Copy({ text, label = "Copy", icon = "copy" }: { text: () => string; label?: string; icon?: IconName }) {
  const [done, setDone] = useState<boolean | null>(null);
  const copy = async (): Promise<void> => {
    setDone(await copied(text()));
    setTimeout(() => setDone(null), 2000);
  };
  const name = done === null ? label : done ? "Copied" : "The browser does not let this page copy";
  return (
    <button type="button" class="icon" onClick={() => void copy()} aria-label={name} title={name}>
      <Icon name={done === null ? icon : done ? "check" : "cross"} />
    </button>
  );
}
