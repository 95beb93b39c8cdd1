/** The control room begins here. */

import { render } from "preact";

import { followServer } from "./api/server";
import { App } from "./app";
import { turnNothing } from "./bidi_controls";
import { followAddress } from "./route";
import { followTheme } from "./theme";

const place = document.getElementById("app");
if (place === null) throw new Error("index.html has no element #app");

turnNothing();
followTheme();
followAddress();
followServer();
render(<App />, place);
