// The sheet of keys.
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./parts/Icon.js";
import { useDesk } from "./state/context.js";
import { KEYS } from "./keys.js";

export function Help() {
  const desk = useDesk();
  const sheet = useRef<HTMLDialogElement>(null);
  const open = desk.helping.value;
  useEffect(() => {
    if (open && !sheet.current?.open) sheet.current?.showModal();
    if (!open) sheet.current?.close();
  }, [open]);
  return (
    <dialog id="help" ref={sheet} aria-labelledby="help-title" onClose={() => (desk.helping.value = false)}>
      <div class="bar">
        <h2 id="help-title">Keys</h2>
        <span class="spring" />
        <button type="button" class="icon" aria-label="Close" onClick={() => (desk.helping.value = false)}>
          <Icon name="cross" />
        </button>
      </div>
      <dl class="keys">
        {KEYS.map(({ key, label, does }) => (
          <div key={key}>
            <dt>
              <kbd>{label ?? key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>Enter</kbd>
          </dt>
          <dd>send the message</dd>
        </div>
        <div>
          <dt>
            <kbd>Shift</kbd> <kbd>Enter</kbd>
          </dt>
          <dd>break the line</dd>
        </div>
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>Enter</kbd>
          </dt>
          <dd>while a run is active: stop it, and send</dd>
        </div>
        <div>
          <dt>
            <kbd>↑</kbd>
          </dt>
          <dd>in an empty message: what was written before</dd>
        </div>
      </dl>
    </dialog>
  );
}
