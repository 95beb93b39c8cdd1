/** Entry point of the control room. */

import { render } from "preact";

import { followServer } from "./api/server";
import { App } from "./app";
import { escapeAllBidiControls } from "./bidi_controls";
import { followAddress } from "./route";
import { followTheme } from "./theme";

const container = document.getElementById("app");
if (container === null) throw new Error("index.html has no element #app");

escapeAllBidiControls();
followTheme();
followAddress();
followServer();
render(<App />, container);
