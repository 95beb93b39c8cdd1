/** The control room begins here. */

import { render } from "preact";

import { followServer } from "./api/server";
import { App } from "./app";
import { followAddress } from "./route";
import { followTheme } from "./theme";
import { turnNothing } from "./turning";

const place = document.getElementById("app");
if (place === null) throw new Error("index.html has no element #app");

turnNothing();
followTheme();
followAddress();
followServer();
render(<App />, place);
