// One field of a form, drawn from its JSON Schema; objects and lists hold fields in turn.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { Icon } from "../parts/Icon.js";
import {
  blank,
  labelOf,
  needsNothing,
  propertiesOf,
  requires,
  resolve,
  type Schema,
  Unreadable,
  variantsOf,
} from "./schema.js";

export interface FieldGiven {
  schema: Schema;
  root: Schema;
  label: string;
  value: unknown;
  path: string;
  errors: ReadonlyMap<string, string>;
  seed?: unknown;
  quick?: boolean; // what needs nothing filled in has a button of its own elsewhere
  change: (value: unknown) => void;
}

export function Field(given: FieldGiven) {
  const schema = resolve(given.schema, given.root);
  const label = typeof schema["title"] === "string" && schema["title"] !== "" ? schema["title"] : given.label;
  const inner = { ...given, schema, label };
  const variants = variantsOf(schema, given.root);
  if ("const" in schema) return null;
  if (variants !== null && variants.length > 1) return <Variants {...inner} variants={variants} />;
  if (variants?.length === 1) return <Field {...inner} schema={{ ...(variants[0] as Schema), title: label }} />;
  if (Array.isArray(schema["enum"])) return <Options {...inner} options={schema["enum"]} />;
  if (schema["type"] === "object" && propertiesOf(schema).length > 0) return <Group {...inner} />;
  if (schema["type"] === "array") return <List {...inner} />;
  return <Input {...inner} />;
}

function Problem({ errors, path, id }: { errors: ReadonlyMap<string, string>; path: string; id: string }) {
  const text = errors.get(path);
  return text === undefined ? null : (
    <span id={id} class="field-error" role="alert">
      {text}
    </span>
  );
}

const hint = (schema: Schema): string | undefined =>
  typeof schema["description"] === "string" ? schema["description"] : undefined;

function Input({ schema, label, value, path, errors, change }: FieldGiven) {
  const id = useId();
  const type = schema["type"];
  const wrong = errors.has(path);
  const said = { id, "aria-invalid": wrong, "aria-describedby": wrong ? `${id}-e` : undefined };
  if (type === "boolean") {
    return (
      <div class="field check">
        <label>
          <input
            type="checkbox"
            {...said}
            checked={value === true}
            onChange={(event) => change(event.currentTarget.checked)}
          />{" "}
          {label}
        </label>
        <Problem errors={errors} path={path} id={`${id}-e`} />
      </div>
    );
  }
  const text = type === "string" || (type === undefined && typeof value !== "object");
  const plain = text && !(type === undefined && schema["title"] === undefined && "default" in schema);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {type === "number" || type === "integer" ? (
        <input
          type="number"
          {...said}
          step={type === "integer" ? 1 : "any"}
          placeholder={hint(schema)}
          value={value === undefined ? "" : String(value)}
          onInput={(event) => change(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))}
        />
      ) : plain ? (
        <Line said={said} schema={schema} value={value} change={change} />
      ) : (
        <Json said={said} value={value} change={change} />
      )}
      <Problem errors={errors} path={path} id={`${id}-e`} />
    </div>
  );
}

type Said = { id: string; "aria-invalid": boolean; "aria-describedby": string | undefined };

function Line({
  said,
  schema,
  value,
  change,
}: {
  said: Said;
  schema: Schema;
  value: unknown;
  change: (value: unknown) => void;
}) {
  const shown = typeof value === "string" ? value : value === undefined ? "" : String(value);
  const long = shown.length > 80 || (schema["maxLength"] as number) > 200;
  const input = (text: string): void => change(text === "" ? undefined : text);
  if (long)
    return (
      <textarea
        {...said}
        rows={4}
        value={shown}
        placeholder={hint(schema)}
        onInput={(event) => input(event.currentTarget.value)}
      />
    );
  return (
    <input
      type="text"
      {...said}
      value={shown}
      placeholder={hint(schema)}
      onInput={(event) => input(event.currentTarget.value)}
    />
  );
}

/** Anything else is written as JSON. */
function Json({ said, value, change }: { said: Said; value: unknown; change: (value: unknown) => void }) {
  const [text, setText] = useState(
    value === undefined ? "" : value instanceof Unreadable ? value.text : JSON.stringify(value, null, 2),
  );
  const input = (now: string): void => {
    setText(now);
    if (now.trim() === "") return change(undefined);
    try {
      change(JSON.parse(now));
    } catch {
      change(new Unreadable(now));
    }
  };
  return (
    <textarea
      {...said}
      class="mono"
      rows={Math.min(12, Math.max(3, text.split("\n").length))}
      spellcheck={false}
      placeholder="JSON"
      value={text}
      onInput={(event) => input(event.currentTarget.value)}
    />
  );
}

function Options({ schema, label, value, path, errors, change, options }: FieldGiven & { options: unknown[] }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={String(options.indexOf(value))}
        onChange={(event) => change(options[Number(event.currentTarget.value)])}
        title={hint(schema)}
      >
        <option value="-1">Choose…</option>
        {options.map((each, index) => (
          <option key={index} value={String(index)}>
            {String(each)}
          </option>
        ))}
      </select>
      <Problem errors={errors} path={path} id={`${id}-e`} />
    </div>
  );
}

function Group({ schema, root, label, value, path, errors, seed, quick = false, change }: FieldGiven) {
  const held = value !== null && typeof value === "object" ? (value as Record<string, unknown>) : {};
  const within = seed !== null && typeof seed === "object" ? (seed as Record<string, unknown>) : {};
  const set = (name: string, each: unknown): void => {
    const { [name]: _, ...rest } = held;
    change(each === undefined ? rest : { ...rest, [name]: each });
  };
  const shown = propertiesOf(schema).filter(([, each]) => !("const" in resolve(each, root)));
  return (
    <Frame label={label} bare={shown.length === 1}>
      {shown.map(([name, each]) => (
        <Field
          key={name}
          schema={each}
          root={root}
          quick={quick}
          label={name + (requires(schema, name) ? "" : " (optional)")}
          value={held[name]}
          seed={within[name]}
          path={`${path}/${name}`}
          errors={errors}
          change={(now) => set(name, now)}
        />
      ))}
      <Problem errors={errors} path={path} id="" />
    </Frame>
  );
}

/** Several fields that belong together; a frame around a single one says nothing. */
function Frame({ label, bare, children }: { label: string; bare: boolean; children: ComponentChildren }) {
  if (bare) return <>{children}</>;
  return (
    <fieldset>
      <legend>{label}</legend>
      {children}
    </fieldset>
  );
}

function List({ schema, root, label, value, path, errors, quick = false, change }: FieldGiven) {
  const held = Array.isArray(value) ? (value as unknown[]) : [];
  const fixed = Array.isArray(schema["prefixItems"]) ? (schema["prefixItems"] as Schema[]) : null;
  const each = (schema["items"] ?? {}) as Schema;
  const rows = fixed ?? held.map(() => each);
  return (
    <Frame label={label} bare={fixed?.length === 1}>
      {rows.map((one, index) => (
        <div key={index} class="list-row">
          <Field
            schema={one}
            root={root}
            quick={quick && rows.length === 1}
            label={`${label} ${index + 1}`}
            value={held[index]}
            path={`${path}/${index}`}
            errors={errors}
            change={(now) => change(rows.map((_, at) => (at === index ? now : held[at])))}
          />
          {fixed === null && (
            <button
              type="button"
              class="icon"
              aria-label={`Remove ${label} ${index + 1}`}
              onClick={() => change(held.toSpliced(index, 1))}
            >
              <Icon name="cross" />
            </button>
          )}
        </div>
      ))}
      {fixed === null && (
        <button type="button" class="plain" onClick={() => change([...held, blank(each, root)])}>
          Add
        </button>
      )}
      <Problem errors={errors} path={path} id="" />
    </Frame>
  );
}

function Variants({
  root,
  label,
  value,
  path,
  errors,
  seed,
  quick,
  change,
  variants: all,
}: FieldGiven & { variants: Schema[] }) {
  const variants = quick ? all.filter((each) => !needsNothing(each)) : all;
  const [at, setAt] = useState(-1);
  const chosen = variants[at];
  const choose = (index: number): void => {
    setAt(index);
    const variant = variants[index];
    if (variant !== undefined) change(blank(variant, root, narrowed(seed, variant)));
  };
  return (
    <fieldset>
      <legend>{label}</legend>
      <div class="choices" role="group" aria-label={label}>
        {variants.map((variant, index) => (
          <button key={index} type="button" class="plain" aria-pressed={index === at} onClick={() => choose(index)}>
            {labelOf(variant, root, `Option ${index + 1}`)}
          </button>
        ))}
      </div>
      {chosen && (
        <Field
          schema={{ ...chosen, title: "" }}
          root={root}
          label={labelOf(chosen, root, label)}
          value={value}
          seed={seed}
          path={path}
          errors={errors}
          change={change}
        />
      )}
      <Problem errors={errors} path={path} id="" />
    </fieldset>
  );
}

/** Of a seed what the variant has a place for. */
function narrowed(seed: unknown, variant: Schema): unknown {
  if (seed === null || typeof seed !== "object") return undefined;
  const names = new Set(propertiesOf(variant).map(([name]) => name));
  return Object.fromEntries(Object.entries(seed).filter(([name]) => names.has(name)));
}
