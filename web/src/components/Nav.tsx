/** Navigation between schedulers. Arrow keys, Home and End move between the links, in addition to Tab. */

import { useEffect, useRef } from "preact/hooks";

import type { SchedulerView } from "../api/types";
import type { Route } from "../route";
import { schedulerHref } from "../route";
import { StateDot } from "./StateDot";

interface NavProps {
  readonly schedulers: readonly SchedulerView[];
  readonly route: Route;
}

export function Nav({ schedulers, route }: NavProps) {
  const nav = useRef<HTMLElement>(null);
  const current = route.page === "scheduler" ? route.scheduler : null;
  useEffect(() => {
    // On narrow screens the links scroll sideways.
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current, schedulers.length]);
  return (
    <nav class="nav" aria-label="Schedulers" ref={nav} onKeyDown={moveFocus} data-testid="nav">
      <ul>
        <li>
          <a href="#/" aria-current={route.page === "home" ? "page" : undefined} data-testid="nav-home">
            Overview
          </a>
        </li>
        {schedulers.map((scheduler) => (
          <li key={scheduler.name}>
            <a
              href={schedulerHref(scheduler.name)}
              aria-current={scheduler.name === current ? "page" : undefined}
              data-testid={`nav-${scheduler.name}`}
            >
              {scheduler.title} <StateDot state={scheduler.state} quiet />
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** The index of the link that a key moves the focus to; `null` for other keys. */
export function focusTarget(key: string, index: number, count: number): number | null {
  switch (key) {
    case "ArrowDown":
    case "ArrowRight":
      return (index + 1) % count;
    case "ArrowUp":
    case "ArrowLeft":
      return (index - 1 + count) % count;
    case "Home":
      return 0;
    case "End":
      return count - 1;
    default:
      return null;
  }
}

function moveFocus(event: KeyboardEvent): void {
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll("a")];
  const target = focusTarget(event.key, links.indexOf(document.activeElement as HTMLAnchorElement), links.length);
  if (target === null) return;
  event.preventDefault();
  links[target]?.focus();
}
