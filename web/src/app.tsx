/** The frame of every page: navigation, connection state, and the page itself. */

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
  usePageChange(heading, pageKey(here), title);
  return (
    <>
      <header class="side">
        {/* biome-ignore lint/a11y/useValidAnchor: a skip link is a link by convention; its jump is done in code below */}
        <a
          class="skip-link"
          href="#/"
          onClick={(event) => {
            // The hash is the route, so the jump is done in code.
            event.preventDefault();
            heading.current?.focus();
          }}
        >
          Skip to content
        </a>
        <Brand />
        {!needsSignIn && <Nav schedulers={schedulerList.value?.schedulers ?? []} route={here} />}
        <div class="side-foot">
          <ThemeToggle />
          <a class="docs-link" href="/docs/">
            Documentation
          </a>
          <SessionInfo />
        </div>
      </header>
      <main class="main" data-connection={connection.value.kind}>
        <div class="main-head">
          <h1 ref={heading} tabIndex={-1} data-testid="title">
            {title}
          </h1>
          {/* Before sign-in nothing is live; only a lost connection is shown. */}
          {(!needsSignIn || connection.value.kind !== "live") && (
            <ConnectionBadge connection={connection.value} onRetry={retryNow} />
          )}
        </div>
        {serverError.value !== null && openStream.value === null && <ErrorNote error={serverError.value} />}
        {needsSignIn ? (
          <SignIn />
        ) : (
          <ErrorBoundary key={pageKey(here)}>
            <Page here={here} />
          </ErrorBoundary>
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

function SessionInfo() {
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

/** Show the error of a page that failed to render, and keep the frame. */
function ErrorBoundary({ children }: { readonly children: ComponentChildren }) {
  const [thrown] = useErrorBoundary((error) => console.error(error));
  return thrown === undefined ? children : <ErrorNote error={asApiError(thrown)} />;
}

/** After a change of page, set the document title and focus the heading; the first page is not focused. */
function usePageChange(heading: { readonly current: HTMLElement | null }, key: string, title: string): void {
  const before = useRef(key);
  useEffect(() => {
    document.title = title === "Pendula" ? title : `${title} · Pendula`;
    if (before.current !== key) heading.current?.focus();
    before.current = key;
  }, [key, title]);
}

function pageKey(here: Route): string {
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
      return "Page not found";
  }
}
