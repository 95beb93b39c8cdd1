// @vitest-environment happy-dom

import { expect, test, vi } from "vitest";

import { EngineAddress } from "../../api/client";
import { api } from "../../api/server";
import { draw, find, interact, texts } from "../../testing/drawing";
import { barsOf } from "./bars";
import { Holdings } from "./Holdings";
import { Clock, minuteOf, span, withoutActorLocks } from "./model";
import { eventSentence, toneOf } from "./sentences";
import { Timeline } from "./Timeline";
import { action, event, world } from "./testing";
import { Waiting } from "./Waiting";
import { WorldHistory } from "./WorldHistory";

const CLOCK = new Clock("2025-07-01T00:00:00");
const ADDRESS = new EngineAddress("actions", "town");
const WHY = {
  code: "waits_for_locks",
  sentence: "rolls waits for oven, held by bread until 09:00.",
  facts: {},
  because: [{ code: "lock", sentence: "oven, held by bread until 09:00.", facts: { lock: "oven" }, because: [] }],
};
const ROLLS = action({ id: "rolls", stage: "waiting", since: 1910, until: null, why: WHY });

test("minutes are formatted as times of the world", () => {
  expect([CLOCK.time(485), CLOCK.day(1940), CLOCK.moment(1940)]).toEqual(["08:05", "Wed 2 Jul", "Wed 08:20"]);
  expect(new Clock("2025-07-01T06:30:00+02:00").time(60)).toBe("07:30");
  expect([CLOCK.nextTick(61, 60), CLOCK.nextTick(120, 60), CLOCK.nextTick(-30, 60)]).toEqual([120, 120, 0]);
  expect([span(45), span(60), span(125)]).toEqual(["45 min", "1 h", "2 h 05"]);
});

test("event times of any epoch are converted to minutes of the run", () => {
  expect([minuteOf(event("start", 100), world()), minuteOf(event("start", 3000), world())]).toEqual([100, 3000]);
});

test.each([
  [event("start", 1900, { d: 80, waited: 30 }), "starts, 1 h 20 until 09:00, after waiting 30 min"],
  [event("start", 1900, { d: 80, segment: 1 }), "resumes, 1 h 20 until 09:00"],
  [event("end", 1900, { forced: true, d_rem: 20 }), "ended early, 20 min left"],
  [event("end", 1900), "done"],
  [
    event("interrupt", 1900, { by: "bell", d_rem: 35, resume: "manual" }),
    "interrupted by bell with 35 min left; waits for a resume command",
  ],
  [event("interrupt", 1900, { by: "cancel", d_rem: 60, resume: "drop" }), "cancelled with 1 h left"],
  [
    event("visibility_change", 1900, { knowledge: "ledger", from_scope: "private", to_scope: "pc" }),
    "reveals ledger: private → pc",
  ],
  [
    event("visibility_change", 1900, {
      knowledge: "ledger",
      from_scope: "pc",
      to_scope: "redacted",
      reason: "expired",
    }),
    "ledger expires: pc → redacted",
  ],
  [event("rejection", 1900, {}, { message: "There is no definition of fly" }), "There is no definition of fly"],
  [
    event("epoch", 1440, {}, { carried_in: [{ action_id: "mill", remaining: 5, pc: false }] }),
    "epoch 1 starts; mill continues from the previous epoch",
  ],
])("an event is described in a sentence", (described, sentence) => {
  expect(eventSentence(described, world(), CLOCK)).toBe(sentence);
});

test("rejections, diagnostics and interrupts are highlighted", () => {
  expect(["start", "interrupt", "diagnostic", "rejection"].map((type) => toneOf(event(type, 0)))).toEqual([
    "plain",
    "warn",
    "warn",
    "bad",
  ]);
});

test("a waiting action shows its reason, which expands to the chain of reasons", () => {
  const choose = vi.fn();
  const now = world({ actions: [action(), ROLLS], counts: { running: 1, waiting: 1, held: 0, suspended: 0 } });
  const page = draw(<Waiting now={now} clock={CLOCK} address={ADDRESS} live chosen="rolls" onChoose={choose} />);

  const rows = find(page, "tbody").querySelectorAll("tr");
  expect(rows).toHaveLength(1);
  expect(rows[0]?.getAttribute("aria-current")).toBe("true");
  expect(find(page, "summary").textContent).toBe(WHY.sentence);
  expect(texts(page, "[data-testid=reason] > .reason-sentence")).toHaveLength(2);
  interact(() => find(page, "td .link-button").click());
  expect(choose).toHaveBeenCalledWith("rolls");
});

test.each([
  [true, null],
  [false, 41],
])("a missing reason is fetched for the moment shown", async (live, at) => {
  const now = world({ n: 41, actions: [action({ ...ROLLS, why: null })] });
  const why = vi.spyOn(api, "why").mockResolvedValue({ code: "waits", sentence: "", facts: {}, because: [] });
  const page = draw(<Waiting now={now} clock={CLOCK} address={ADDRESS} live={live} chosen={null} onChoose={vi.fn()} />);

  interact(() => find(page, ".button-quiet").click());

  await vi.waitFor(() => expect(why).toHaveBeenCalledWith(ADDRESS, { action: "rolls" }, at));
});

test("locks show their holder and their queue; implicit locks of actors are hidden", () => {
  const free = { held_by: null, until: null, queue: [], waiting: 0, capacity: 1, holders: [] };
  const oven = {
    name: "oven",
    held_by: "bread",
    until: 1980,
    queue: ["rolls"],
    waiting: 3,
    capacity: 1,
    holders: ["bread"],
  };
  const now = world({ locks: [{ name: "actor:bruno", ...free, waiting: 1 }, oven, { name: "mill", ...free }] });
  const page = draw(<Holdings now={now} clock={CLOCK} onChoose={vi.fn()} />);

  expect(texts(find(page, "[data-testid=locks]"), "tbody tr")).toEqual([
    "ovenbreaduntil 09:00rollsand 2 more",
    "millfreeempty",
  ]);
});

test("reasons name the actor instead of its implicit lock", () => {
  const cause = { code: "holder", sentence: "actor:ada is taken.", facts: {}, because: [] };
  const reason = { ...cause, sentence: "tea waits for actor:ada; held by nap.", because: [cause] };

  const shown = withoutActorLocks(reason);

  expect([shown.sentence, shown.because[0]?.sentence]).toEqual(["tea waits for ada; held by nap.", "ada is taken."]);
});

test("resources show what is left, reserved, used and produced", () => {
  const flour = { name: "flour", available: 1.5, reserved: 4, consumed: 8, produced: 5.5 };
  const page = draw(<Holdings now={world({ resources: [flour] })} clock={CLOCK} onChoose={vi.fn()} />);

  expect(texts(find(page, "[data-testid=resources]"), "tbody td")).toEqual(["flour", "1.5", "4", "8", "5.5"]);
});

test("locations are listed, and a world without any has no such panel", () => {
  const drawn = (places: Readonly<Record<string, string>>) =>
    draw(<Holdings now={world({ places })} clock={CLOCK} onChoose={vi.fn()} />);

  expect(texts(find(drawn({ ann: "harbour", bruno: "mill" }), "[data-testid=places]"), "tbody tr")).toEqual([
    "annharbour",
    "brunomill",
  ]);
  expect(drawn({}).querySelector("[data-testid=panel-places]")).toBeNull();
});

test("the parameters of an action are shown while it waits and at its start", () => {
  const waits = world({ actions: [action({ ...ROLLS, params: { to: "market", crates: 2 } })] });
  const started = [
    event("start", 1500, { d: 5, params: { to: "market" } }),
    event("start", 1510, { d: 5, params: {} }),
  ];

  const waiting = draw(<Waiting now={waits} clock={CLOCK} address={ADDRESS} live chosen={null} onChoose={vi.fn()} />);
  expect(texts(waiting, "[data-testid=params]")).toEqual(["to market, crates 2"]);
  const page = draw(
    <WorldHistory events={started} gaps={[]} now={world()} clock={CLOCK} onShowRecord={vi.fn()} onChoose={vi.fn()} />,
  );
  expect(texts(page, "[data-testid=params]")).toEqual([" (to market)"]);
});

test("events are shown newest first: all, those of the player character, or only problems", () => {
  const look = vi.fn();
  const events = [
    event("start", 1500, { d: 5 }, { pc: true }),
    event("rejection", 1510, {}, { action_id: "fly", code: "UnknownVerb", message: "No." }),
    event("end", 1520),
  ];
  const page = draw(
    <WorldHistory events={events} gaps={[]} now={world()} clock={CLOCK} onShowRecord={look} onChoose={vi.fn()} />,
  );
  const types = () => [...page.querySelectorAll(".event-text")].map((row) => row.getAttribute("data-type"));

  expect(types()).toEqual(["end", "rejection", "start"]);
  interact(() => find(page, "[data-testid=filter-pc]").click());
  expect(types()).toEqual(["start"]);
  interact(() => find(page, "[data-testid=filter-problems]").click());
  expect(types()).toEqual(["rejection"]);
  expect(find(page, ".code-badge").textContent).toBe("UnknownVerb");
  interact(() => find(page, "td .link-button").click());
  expect(look).toHaveBeenCalledWith(Number(events[1]?.id.split(".")[0]));
});

test("missed events are reported", () => {
  const gaps = ["7 events missed."];
  const page = draw(
    <WorldHistory events={[]} gaps={gaps} now={world()} clock={CLOCK} onShowRecord={vi.fn()} onChoose={vi.fn()} />,
  );

  expect(texts(page, "[data-testid=gap]")).toEqual(gaps);
});

test("the timeline is navigated with arrow keys, described in words, and available as a table", () => {
  const choose = vi.fn();
  const now = world({ actions: [action(), ROLLS] });
  const early = { action_id: "early" };
  const bars = barsOf([event("start", 1500, {}, early), event("end", 1560, {}, early)], now);
  const drawn = (chosen: string | null) =>
    draw(<Timeline bars={bars} now={now} live chosen={chosen} onChoose={choose} />);
  const press = (key: string) =>
    interact(() => void find(page, "[data-testid=timeline]").dispatchEvent(new KeyboardEvent("keydown", { key })));
  const page = drawn(null);

  expect(find(page, "[data-testid=timeline-status]").textContent).toContain("scheduled for later");
  press("ArrowRight");
  expect(choose).toHaveBeenLastCalledWith("rolls");
  drawn("rolls");
  expect(find(page, "[data-testid=timeline-status]").textContent).toBe(
    "rolls: bruno, bake. Waiting since Wed 07:50, for 30 min now. Locks: oven.",
  );
  press("Home");
  expect(choose).toHaveBeenLastCalledWith("early");
  press("Escape");
  expect(choose).toHaveBeenLastCalledWith(null);
  expect(texts(find(page, "[data-testid=timeline-table]"), "tbody tr")).toEqual([
    "brunoearlybakeWed 01:00Wed 02:00doneoven",
    "brunobreadbakeWed 07:40Wed 09:00runsoven",
    "brunorollsbakeWed 07:50Wed 08:20waitsoven",
  ]);
});
