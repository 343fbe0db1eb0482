// The questions that wait for a person, as forms under the draft they belong to. Several are sent together.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Interrupt } from "../client/runcast.js";
import { Field } from "../forms/Field.js";
import {
  blank,
  check,
  choicesOf,
  labelOf,
  readyOf,
  type Schema,
  requestsOf,
  schemaOf,
  seedOf,
} from "../forms/schema.js";
import { JsonTree, levelsOf } from "../parts/JsonTree.js";
import type { Answer } from "../state/api.js";
import type { Session } from "../state/session.js";
import { headingOf, worded } from "../state/words.js";

export function Questions({ session }: { session: Session }) {
  const waiting = session.questions.value;
  const stamp = waiting.map(({ id }) => id).join("\n");
  const [answers, setAnswers] = useState<ReadonlyMap<string, Answer>>(new Map());
  useEffect(() => setAnswers(new Map()), [stamp, session]);
  const answer = (given: Answer): void => {
    const now = new Map([...answers, [given.interruptId, given]]);
    setAnswers(now);
    if (now.size === waiting.length) void session.answer([...now.values()]);
  };
  const reopen = (id: string): void => setAnswers(new Map([...answers].filter(([key]) => key !== id)));
  return (
    <section id="questions" aria-label="Questions that wait for you" aria-live="polite">
      {waiting.map((asked) => {
        const given = answers.get(asked.id);
        if (given === undefined || waiting.length === 1)
          return <Question key={asked.id} asked={asked} busy={session.sending.value} answer={answer} />;
        return (
          <div key={asked.id} class="question answered">
            <p>{headingOf(asked)}</p>
            <p class="quiet">
              Your answer: {given.status === "cancelled" ? "(cancelled)" : worded(given.payload)}. It is sent with the
              others.{" "}
              <button type="button" class="link" disabled={session.sending.value} onClick={() => reopen(asked.id)}>
                Change it
              </button>
            </p>
          </div>
        );
      })}
    </section>
  );
}

/** Whether what was asked holds more than its message. */
function tells({ value, message }: Interrupt): boolean {
  if (value === undefined || value === message) return false;
  return !(value !== null && typeof value === "object" && Object.values(value).every((each) => each === message));
}

/** What was asked beside its message: the calls to be approved, or the value as it came. */
function Told({ asked }: { asked: Interrupt }) {
  const calls = requestsOf(asked);
  if (calls.length === 0 && !tells(asked)) return null;
  return (
    <div class="tree">
      {calls.length === 0 ? (
        <JsonTree value={asked.value} open={levelsOf(asked.value)} />
      ) : (
        calls.map(({ name, args }, index) => (
          <div key={index}>
            <b>{name}</b>
            <JsonTree value={args} open={levelsOf(args)} />
          </div>
        ))
      )}
    </div>
  );
}

interface Given {
  asked: Interrupt;
  busy: boolean;
  answer: (answer: Answer) => void;
}

function Question({ asked, busy, answer }: Given) {
  const schema = useMemo(() => schemaOf(asked), [asked]);
  const choices = useMemo(() => choicesOf(schema), [schema]);
  const resolved = (payload: unknown): void => answer({ interruptId: asked.id, status: "resolved", payload });
  const cancel = (
    <button
      type="button"
      class="plain"
      disabled={busy}
      onClick={() => answer({ interruptId: asked.id, status: "cancelled" })}
    >
      Cancel
    </button>
  );
  return (
    <div class="question" data-question={asked.id}>
      <p>{headingOf(asked)}</p>
      <Told asked={asked} />
      {choices !== null ? (
        <div class="answers">
          {choices.map((choice, index) => (
            <button
              key={index}
              type="button"
              class={index > 0 && choices.length === 2 ? "plain" : undefined}
              disabled={busy}
              onClick={() => resolved(choice.value)}
            >
              {choice.label}
            </button>
          ))}
          {cancel}
        </div>
      ) : (
        <Form asked={asked} schema={schema} busy={busy} resolved={resolved} cancel={cancel} />
      )}
    </div>
  );
}

interface FormGiven {
  asked: Interrupt;
  schema: Schema | null;
  busy: boolean;
  resolved: (payload: unknown) => void;
  cancel: preact.JSX.Element;
}

const TEXT: Schema = { type: "string" };

function Form({ asked, schema, busy, resolved, cancel }: FormGiven) {
  const root = schema ?? TEXT;
  const [value, setValue] = useState<unknown>(() => blank(root, root));
  const [errors, setErrors] = useState<ReadonlyMap<string, string>>(new Map());
  const form = useRef<HTMLFormElement>(null);
  const seed = useMemo(() => seedOf(asked), [asked]);
  const ready = useMemo(() => readyOf(root), [root]);
  const send = (now: unknown): void => {
    const given = schema === null ? (now ?? "") : now;
    const wrong = schema === null ? new Map<string, string>() : check(given, root);
    setErrors(wrong);
    if (wrong.size === 0) resolved(given);
  };
  // With the same drawing that shows the errors: a frame later somebody may be typing in another field.
  useLayoutEffect(() => {
    if (errors.size > 0) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [errors]);
  return (
    <form
      ref={form}
      class="answer-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        send(value);
      }}
    >
      {ready.length > 0 && (
        <div class="answers">
          {ready.map(({ label, value: whole }) => (
            <button key={label} type="button" disabled={busy} onClick={() => send(whole)}>
              {label}
            </button>
          ))}
        </div>
      )}
      <Field
        schema={root}
        root={root}
        label={schema === null || schema["type"] !== "object" ? "Your answer" : labelOf(schema, root, "Your answer")}
        value={value}
        seed={seed}
        quick={ready.length > 0}
        path=""
        errors={errors}
        change={setValue}
      />
      <div class="answers">
        <button type="submit" disabled={busy}>
          Answer
        </button>
        {cancel}
      </div>
    </form>
  );
}
