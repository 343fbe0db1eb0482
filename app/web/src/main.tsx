// The page's beginning: which thread the address names, and where runcast is mounted.
import { render } from "preact";
import { App } from "./App.js";
import { Api } from "./state/api.js";
import { Desk } from "./state/desk.js";
import { expose } from "./state/expose.js";
import "./styles/index.css";

const desk = new Desk(new Api(new URL(".", location.href)), new URLSearchParams(location.search).get("thread"));
expose(desk);
const root = document.getElementById("app");
if (root !== null) render(<App desk={desk} />, root);
