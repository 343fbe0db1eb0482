// What the AI SDK makes of UI message chunks: [[chunk, ...], ...] on stdin, one answer for each stream on stdout.
//
// Each chunk is judged by the SDK's own schema; the stream is read as `useChat` reads it.
import { readUIMessageStream, uiMessageChunkSchema } from "ai";

let text = "";
for await (const part of process.stdin) text += part;
const schema = typeof uiMessageChunkSchema === "function" ? uiMessageChunkSchema() : uiMessageChunkSchema;
const answers = [];
for (const chunks of JSON.parse(text)) {
  const answer = { refused: [], errors: [], message: null };
  for (const chunk of chunks) {
    const judged = await schema.validate(chunk);
    if (!judged.success) answer.refused.push([chunk, String(judged.error)]);
  }
  const stream = new ReadableStream({
    start(controller) {
      for (const chunk of structuredClone(chunks)) controller.enqueue(chunk);
      controller.close();
    },
  });
  try {
    const onError = (error) => answer.errors.push(String(error?.message ?? error));
    for await (const message of readUIMessageStream({ stream, onError })) answer.message = message;
  } catch (error) {
    answer.errors.push(String(error?.message ?? error));
  }
  answers.push(answer);
}
process.stdout.write(JSON.stringify(answers));
