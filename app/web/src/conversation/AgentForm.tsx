// The form of what an agent asks for beside a message; open where something has to be filled in before the first one.
import { Field } from "../forms/Field.js";
import { check } from "../forms/schema.js";
import type { AgentRow } from "../state/api.js";
import { useDesk } from "../state/context.js";
import type { Session } from "../state/session.js";
import { asked } from "../state/values.js";

const NONE: ReadonlyMap<string, string> = new Map();
const LABELS: Record<string, string> = { context: "Context", input: "Input" };

export function AgentForm({ session, agent }: { session: Session; agent: AgentRow | undefined }) {
  const { values } = useDesk();
  const forms = asked(agent);
  if (agent === undefined || forms.length === 0) return null;
  const needed = forms.some((each) => check(values.of(agent, each) ?? {}, each.schema).size > 0);
  return (
    <details
      id="agent-form"
      class="agent-form"
      open={needed || (session.thread === null && values.wrong.value.size > 0)}
    >
      <summary>Input for {agent.name}</summary>
      {forms.map((each) => (
        <Field
          key={each.place}
          schema={each.schema}
          root={each.schema}
          label={LABELS[each.place] ?? each.place}
          value={values.of(agent, each)}
          path=""
          errors={values.wrong.value.get(each.place) ?? NONE}
          change={(value) => values.change(agent, each, value)}
        />
      ))}
    </details>
  );
}
