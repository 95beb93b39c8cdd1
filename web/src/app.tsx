/** The frame around every page: the way through the schedulers, the state of the connection, and the page itself. */

import type { ComponentChildren } from "preact";
import { useEffect, useErrorBoundary, useRef } from "preact/hooks";

import { asApiError } from "./api/client";
import { connection, openStream, retryNow, schedulerList, serverError, session, signOut } from "./api/server";
import { ConnectionBadge } from "./components/ConnectionBadge";
import { ErrorNote } from "./components/ErrorNote";
import { Logo } from "./components/Logo";
import { Nav } from "./components/Nav";
import { ThemeToggle } from "./components/ThemeToggle";
import { Home } from "./pages/home/Home";
import { SchedulerPage } from "./pages/SchedulerPage";
import { SignIn } from "./pages/SignIn";
import type { Route } from "./route";
import { route } from "./route";

export function App() {
  const heading = useRef<HTMLHeadingElement>(null);
  const here = route.value;
  const needsSignIn = session.value.kind === "needed";
  const title = needsSignIn ? "Sign in" : titleOf(here);
  useArrival(heading, placeOf(here), title);
  return (
    <>
      <header class="side">
        {/* biome-ignore lint/a11y/useValidAnchor: a skip link is one by custom, and its jump is made by hand below */}
        <a
          class="skip-link"
          href="#/"
          onClick={(event) => {
            // The address names the page, so the jump is made by hand.
            event.preventDefault();
            heading.current?.focus();
          }}
        >
          Skip to the content
        </a>
        <Brand />
        {!needsSignIn && <Nav schedulers={schedulerList.value?.schedulers ?? []} route={here} />}
        <div class="side-foot">
          <ThemeToggle />
          <a class="docs-link" href="/docs/">
            Documentation
          </a>
          <Who />
        </div>
      </header>
      <main class="main" data-connection={connection.value.kind}>
        <div class="main-head">
          <h1 ref={heading} tabIndex={-1} data-testid="title">
            {title}
          </h1>
          {/* Who has not signed in sees nothing that could be live; that the server is gone, everybody may know. */}
          {(!needsSignIn || connection.value.kind !== "live") && (
            <ConnectionBadge connection={connection.value} onRetry={retryNow} />
          )}
        </div>
        {serverError.value !== null && openStream.value === null && <ErrorNote error={serverError.value} />}
        {needsSignIn ? (
          <SignIn />
        ) : (
          <Guarded key={placeOf(here)}>
            <Page here={here} />
          </Guarded>
        )}
      </main>
    </>
  );
}

function Page({ here }: { readonly here: Route }) {
  switch (here.page) {
    case "home":
      return <Home />;
    case "scheduler":
      return <SchedulerPage name={here.scheduler} engine={here.engine} at={here.at} on={here.on} />;
    case "unknown":
      return (
        <p class="note" data-testid="page-missing">
          There is no page “{here.path}”. <a href="#/">Back to the overview</a>
        </p>
      );
  }
}

function Brand() {
  const list = schedulerList.value;
  return (
    <a class="brand" href="#/" data-testid="brand">
      <Logo live={connection.value.kind === "live"} />
      <span class="brand-words">
        <span class="brand-name">Pendula</span>
        {list !== null && (
          <span class="brand-version">
            <span data-testid="version">{list.version}</span>{" "}
            {list.demo && (
              <span class="demo-label" data-testid="demo">
                demo
              </span>
            )}
          </span>
        )}
      </span>
    </a>
  );
}

function Who() {
  const now = session.value;
  if (now.kind !== "open") return null;
  const { name, role, tokens_required } = now.session;
  return (
    <p class="who" data-testid="who">
      <span>
        {name} · {role}
      </span>
      {tokens_required && (
        <button type="button" class="button button-quiet" onClick={() => void signOut()} data-testid="sign-out">
          Sign out
        </button>
      )}
    </p>
  );
}

/** A page that fails says so and leaves the frame standing. */
function Guarded({ children }: { readonly children: ComponentChildren }) {
  const [thrown] = useErrorBoundary((error) => console.error(error));
  return thrown === undefined ? children : <ErrorNote error={asApiError(thrown)} />;
}

/** On arriving at another page: its name in the title bar, the focus on its heading (but not on the very first page). */
function useArrival(heading: { readonly current: HTMLElement | null }, place: string, title: string): void {
  const before = useRef(place);
  useEffect(() => {
    document.title = title === "Pendula" ? title : `${title} · Pendula`;
    if (before.current !== place) heading.current?.focus();
    before.current = place;
  }, [place, title]);
}

function placeOf(here: Route): string {
  return here.page === "scheduler" ? `schedulers/${here.scheduler}` : here.page;
}

function titleOf(here: Route): string {
  switch (here.page) {
    case "home":
      return "Overview";
    case "scheduler":
      return (
        schedulerList.value?.schedulers.find((scheduler) => scheduler.name === here.scheduler)?.title ?? here.scheduler
      );
    case "unknown":
      return "Not here";
  }
}
