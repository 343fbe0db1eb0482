// A state in words and colour, the same everywhere.
import { stateOf } from "../state/words.js";

export function State({ state, id }: { state: string | null | undefined; id?: string }) {
  const { label, tone } = stateOf(state);
  return (
    <span id={id} class="state" data-tone={tone} role={id ? "status" : undefined} aria-live={id ? "polite" : undefined}>
      {tone === "busy" && <span class="spin" aria-hidden="true" />}
      {label}
    </span>
  );
}
