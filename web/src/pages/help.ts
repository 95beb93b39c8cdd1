/** Help texts of the scheduler pages, with the related documentation pages. */

export interface Help {
  readonly sentences: readonly string[];
  /** Titles of pages by their path below the documentation. */
  readonly pages: Readonly<Record<string, string>>;
}

const SLIDER =
  "The slider moves through the history; Play replays it in real time or up to 100 times faster. The URL has the moment shown: send it to share the same view.";

const GENERIC: Help = {
  sentences: [SLIDER, "Ask why below: the answer shows every reason in order."],
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
      "Each actor and each lock has a lane. Solid bars are done or running, striped bars are waiting, and the vertical line is now.",
      "Select a bar with the mouse or the arrow keys to read its details; “Waiting, and why” has the reasons.",
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
      "Circles are participants, lines are trustlines: the wider a line, the more of it is used, and red ones are full.",
      "“Bottlenecks” shows which lines limit payments; “What if” forks the run and compares the outcomes.",
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
      "Trucks drive only on granted track, up to the red stop line. Select a truck to see why it stands and which truck it waits for.",
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
      "“Due” shows when jobs are due. Select a job or an object to see why it waits, and its history.",
      "A dead letter has used up its attempts; requeue it once the cause is fixed.",
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
      "“Shares” shows how the screen time is divided: the turns of each channel, and new artwork, which is drawn at random and ever less often.",
      "Select an item to see why it was shown, to show it next, or to ban it.",
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
