/** Help in place: what one sees on the page of a scheduler, and the pages of the documentation that tell more. */

export interface Help {
  readonly sentences: readonly string[];
  /** Titles of pages by their path below the documentation. */
  readonly pages: Readonly<Record<string, string>>;
}

const SLIDER =
  "The slider moves through everything that happened; Play shows it again at the pace at which it came, or up to 100 times faster. The address in the browser holds the moment: send it to show somebody the same.";

const GENERIC: Help = {
  sentences: [SLIDER, "Every engine says why: ask it below, and it answers with its chain of reasons."],
  pages: {
    "tutorials/first-engine": "Your first engine",
    "how-to/share-a-view": "Share a view",
    "explanation/journals": "Journals",
    "reference/glossary": "Glossary",
  },
};

const HELP: Readonly<Record<string, Help>> = {
  actions: {
    sentences: [
      "Each actor and each lock has a lane. Full bars are what is done or runs, stripes are what waits, and the line is now.",
      "Choose a bar, with the mouse or the arrow keys, to hear about it in words; “What waits, and why” has the reasons.",
      SLIDER,
    ],
    pages: {
      "tutorials/first-day-in-town": "Your first day in town",
      "how-to/serve-a-world": "Serve a world",
      "explanation/order-within-a-minute": "Order within a minute",
      "reference/actions-file": "The file of a world",
      "how-to/share-a-view": "Share a view",
    },
  },
  credit: {
    sentences: [
      "Circles are participants, lines are trust: the wider a line, the more of it is used up, and red ones are full.",
      "“Where payments get stuck” leads to the line that is too narrow; “What if” forks the run and compares.",
    ],
    pages: {
      "tutorials/watch-a-village": "Watch a village run out of credit, and clear it",
      "explanation/clearing-and-the-optimum": "Clearing and the optimum",
      "how-to/checkpoint-and-fork-a-run": "Checkpoint and fork a run",
      "how-to/compare-policies": "Compare policies",
      "how-to/share-a-view": "Share a view",
    },
  },
  fleet: {
    sentences: [
      "Trucks drive only what is granted to them, up to the red stop line. Choose a truck to see why it stands and whom it waits for.",
      SLIDER,
    ],
    pages: {
      "tutorials/four-trucks-in-a-hall": "Four trucks in a hall",
      "how-to/serve-a-fleet": "Serve a fleet",
      "how-to/drill-a-failure": "Drill a failure",
      "explanation/never-a-jam": "Never a jam",
      "how-to/share-a-view": "Share a view",
    },
  },
  jobs: {
    sentences: [
      "“What is due” shows when jobs come up. Choose a job or an object to see why it waits and all that ever happened to it.",
      "A dead letter was tried as often as it may be; requeue it when its cause is gone.",
      SLIDER,
    ],
    pages: {
      "tutorials/keep-memories-fresh": "Keep memories fresh",
      "how-to/find-out-why-a-job-waits": "Find out why a job waits",
      "how-to/gate-a-risky-action": "Gate a risky action",
      "how-to/read-the-audit": "Read the audit",
      "how-to/share-a-view": "Share a view",
    },
  },
  playback: {
    sentences: [
      "The bars of “Who gets how much” together are the screen: each channel's turns, and new artwork, which comes by chance and less and less.",
      "Choose an item to hear why it came up, to see it next, or never again.",
      SLIDER,
    ],
    pages: {
      "tutorials/a-fair-picture-frame": "A fair picture frame in five minutes",
      "how-to/weight-channels": "Weight channels",
      "explanation/smooth-round-robin": "Smooth round robin",
      "explanation/new-artwork": "New artwork",
      "how-to/share-a-view": "Share a view",
    },
  },
};

export function helpFor(scheduler: string): Help {
  return Object.hasOwn(HELP, scheduler) ? (HELP[scheduler] ?? GENERIC) : GENERIC;
}

export const SCHEDULERS_WITH_HELP: readonly string[] = Object.keys(HELP);
