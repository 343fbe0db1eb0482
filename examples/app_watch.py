"""A page of your own: `watch` reads a thread from its start, live, and after every lost connection.

Start it with `uvicorn app_watch:app` and open http://localhost:8000.

Install: `pip install "runcast[cli]" fastapi`.

Look at: the page's few lines of script, and what happens to the words when you stop and start uvicorn.
"""

from collections.abc import AsyncIterator

from ag_ui.core import Event, RunAgentInput, TextMessageChunkEvent
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from runcast.app.fastapi import add_agent

PAGE = """<!doctype html>
<title>A thread</title>
<form><input name="text" value="Hello from my own page"><button>Say</button></form>
<p id="line"></p>
<pre id="text"></pre>
<script type="module">
  import { watch } from "./agent/runcast.js";

  const texts = (view) => view.items.filter((item) => item.kind === "text").map((item) => item.text);
  watch({
    base: "./agent/",
    thread: "mine",
    onChange(view, link) {
      document.getElementById("line").textContent = `${view.status ?? "no run yet"}, ${link.state}`;
      document.getElementById("text").textContent = texts(view).join("\\n");
    },
  });
  document.querySelector("form").onsubmit = (event) => {
    event.preventDefault();
    const message = event.target.elements.text.value;
    const headers = { "content-type": "application/json" };
    fetch("./agent/threads/mine/runs", { method: "POST", headers, body: JSON.stringify({ message }) });
  };
</script>
"""

app = FastAPI()


async def parrot(input: RunAgentInput) -> AsyncIterator[Event]:
    for word in str(input.messages[-1].content).split():
        yield TextMessageChunkEvent(message_id=f"m-{input.run_id}", role="assistant", delta=f"{word} ")


@app.get("/", response_class=HTMLResponse)
def page() -> str:
    return PAGE


cast = add_agent(app, parrot, "/agent")


if __name__ == "__main__":
    print("Start it with: uvicorn app_watch:app")
