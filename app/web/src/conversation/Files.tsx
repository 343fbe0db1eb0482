// Files of a message: pictures as they are, others by their names.
import type { Part } from "../state/api.js";
import { Icon } from "../parts/Icon.js";

const PICTURES = /^image\/(png|jpeg|gif|webp|avif)$/; // an SVG is a document that may run scripts elsewhere

interface Source {
  value?: string;
  mimeType?: string;
}

export function Attached({ parts }: { parts: readonly Part[] | undefined }) {
  if (!parts?.length) return null;
  return (
    <span class="attached">
      {parts.map((part, at) => {
        if (part.type === "text") return null;
        const { value, mimeType = "" } = (part.source ?? {}) as Source;
        const name = part.metadata?.filename ?? part.type;
        return PICTURES.test(mimeType) && value !== undefined ? (
          <img key={at} src={`data:${mimeType};base64,${value}`} alt={name} />
        ) : (
          <span key={at} class="chip">
            <Icon name="file" /> {name}
          </span>
        );
      })}
    </span>
  );
}
