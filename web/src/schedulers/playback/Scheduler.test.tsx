// @vitest-environment happy-dom

import { beforeEach, expect, test, vi } from "vitest";

import { api, session } from "../../api/server";
import { draw, find, interact, texts } from "../../testing/drawing";
import { channelOf, duration, keyOf, leftAt, originOf, percent, progressAt } from "./model";
import { bytesOf, captionOf, encoded, HEIGHT, shapesOf, WIDTH } from "./picture";
import { Screen } from "./Screen";
import { Pool, Shares } from "./Shares";
import { Strip } from "./Strip";
import { exposure, item, player } from "./testing";
import { ViewerControls } from "./ViewerControls";
import { WhyItem } from "./WhyItem";

beforeEach(() => {
  session.value = { kind: "open", session: { name: "local", role: "operator", tokens_required: false } };
});

test("the progress of an item follows the player's clock and stops while it is paused", () => {
  const now = player();
  const paused = player({ paused: true, ends_at: null, left_ms: 3000 });

  expect([10_000, 11_000, 12_000, 99_000].map((clock) => progressAt(now, clock))).toEqual([0, 0.25, 0.5, 1]);
  expect([leftAt(now, 11_000), leftAt(now, 99_000)]).toEqual([3000, 0]);
  expect([progressAt(paused, 99_000), leftAt(paused, 99_000)]).toEqual([0.25, 3000]);
  expect(progressAt(player({ item: null }), 0)).toBe(0);
});

test("times and shares are formatted", () => {
  expect([1, 4000, 60_000, 125_000, 5_400_000].map(duration)).toEqual(["1 s", "4 s", "1 min", "2 min 05", "1 h 30"]);
  expect([percent(333_333), percent(1_000_000)]).toEqual(["33.3 %", "100.0 %"]);
  expect([originOf(item({ origin: "nae" })), channelOf(item({ channel: null }))]).toEqual([
    "new artwork",
    "new artwork",
  ]);
  expect(keyOf(item({ epoch_id: 2n ** 64n - 1n, ordinal: 5 }))).toBe("18446744073709551615.5");
});

test("pictures are deterministic, and every pattern is valid", () => {
  const pictures = Array.from({ length: 6 }, (_, pattern) => {
    const bytes = Array.from({ length: 32 }, (_, index) => (index === 3 ? pattern : (index * 37) % 256));
    expect(shapesOf(bytes)).toEqual(shapesOf([...bytes]));
    return shapesOf(bytes);
  });

  expect(new Set(pictures.map((shapes) => JSON.stringify(shapes))).size).toBe(6);
  for (const shapes of pictures) {
    expect(shapes[0]?.at).toEqual({ x: 0, y: 0, width: WIDTH, height: HEIGHT });
    expect(shapes.length).toBeGreaterThan(4);
    expect(JSON.stringify(shapes)).not.toMatch(/NaN|undefined|Infinity/);
  }
});

test("an item with an empty payload gets a picture from its id", () => {
  const empty = encoded(new Array(32).fill(0));
  const [first, same, other, huge] = [1, 1, 2, 2n ** 64n - 1n].map((id) => bytesOf(empty, id));

  expect(first).toEqual(same);
  expect(first).not.toEqual(other);
  expect([first, huge].map((bytes) => bytes?.length)).toEqual([32, 32]);
  expect(bytesOf("not base64!", 1)).toEqual(first);
  expect(bytesOf(item().payload, 1)[5]).toBe(5);
});

test("the caption is the name of a media file, other payloads have none", () => {
  const payload = encoded([...new TextEncoder().encode("sea/wave.jpg"), ...new Array(20).fill(0)]);

  expect(captionOf(payload, 1)).toBe("sea/wave.jpg");
  expect(captionOf(payload, 0)).toBeNull();
  expect(captionOf(item().payload, 1)).toBeNull();
});

test("the screen shows the current item, and its buttons send commands", () => {
  const command = vi.fn(async () => undefined);
  const page = draw(<Screen now={player({ before: [item()] })} fetchedAt={Date.now()} onCommand={command} />);

  expect(find(page, ".screen-frame svg").getAttribute("aria-label")).toBe("Item 11 of dawn");
  expect(find(page, "figcaption").textContent).toContain("channel turn, item 3 of epoch 0");
  expect(find(page, "[data-testid=dwell]").textContent).toContain("3 s left");
  expect(find(page, "[data-testid=do-ban]").textContent).toBe("Hide until the channel changes");
  for (const name of ["prev", "pause", "next", "ban"]) interact(() => find(page, `[data-testid=do-${name}]`).click());
  expect(command.mock.calls).toEqual([[{ type: "prev" }], [{ type: "pause" }], [{ type: "next" }], [{ type: "ban" }]]);
  interact(() => find(page, "[data-testid=do-insert]").click());
  expect(command).toHaveBeenLastCalledWith(
    expect.objectContaining({ type: "insert", payload: expect.stringMatching(/^[A-Za-z0-9+/]{43}=$/) }),
  );
});

test("the buttons are disabled in the past and for viewers", () => {
  const disabled = (page: HTMLElement) =>
    [...page.querySelectorAll<HTMLButtonElement>(".screen-buttons button")].map((button) => button.disabled);

  expect(disabled(draw(<Screen now={player()} fetchedAt={null} onCommand={vi.fn()} />))).toEqual(
    new Array(5).fill(true),
  );
  session.value = { kind: "open", session: { name: "ann", role: "viewer", tokens_required: true } };
  expect(disabled(draw(<Screen now={player()} fetchedAt={1} onCommand={vi.fn()} />))).toEqual(new Array(5).fill(true));
});

test("a player without an item says so, a paused one can be resumed", () => {
  const blank = draw(<Screen now={player({ item: null })} fetchedAt={1} onCommand={vi.fn()} />);
  expect(find(blank, "[data-testid=blank]").textContent).toContain("Nothing to show");
  const paused = draw(
    <Screen now={player({ paused: true, ends_at: null, left_ms: 2500 })} fetchedAt={1} onCommand={vi.fn()} />,
  );

  expect(texts(paused, "[data-testid=do-resume]")).toEqual(["Resume"]);
  expect(find(paused, "[data-testid=dwell]").textContent).toBe("paused 3 s left");
});

test("reasons of an item of an earlier epoch are not requested", () => {
  const read = vi.spyOn(api, "get").mockReturnValue(new Promise(() => undefined));
  const address = { scheduler: "playback", engine: "hall", base: "/api/v1/playback/hall", stream: () => "" };
  const why = (epoch: number | bigint) => (
    <WhyItem item={item({ epoch_id: 1 })} address={address} epoch={epoch} at={null} chosen onBack={vi.fn()} />
  );

  expect(find(draw(why(2n)), "p").textContent).toBe("The weights of that epoch are no longer stored.");
  expect(read).not.toHaveBeenCalled();
  expect(draw(why(1n)).querySelector("p")).toBeNull();
  expect(read).toHaveBeenCalledTimes(1);
  read.mockRestore();
});

test("items in a strip can be selected", () => {
  const choose = vi.fn();
  const items = [item(), item({ id: 900, channel: null, origin: "nae", ordinal: 4 })];
  const page = draw(
    <Strip name="coming" title="Up next" items={items} empty="Nothing." chosen="0.4" onChoose={choose} />,
  );

  expect(texts(page, ".thumb")).toEqual(["dawn11", "new artwork900"]);
  expect([...page.querySelectorAll(".thumb")].map((thumb) => thumb.getAttribute("aria-pressed"))).toEqual([
    "false",
    "true",
  ]);
  interact(() => find(page, ".thumb").click());
  expect(choose).toHaveBeenCalledWith(items[0]);
});

test("shares are shown with their targets", () => {
  const shares = [
    exposure(),
    exposure({ channel: "tide", target_ppm: 250_000, actual_ppm: null, shown: 0, banned: 1, readable: false }),
  ];
  const page = draw(<Shares exposure={shares} newShown={2} open onCommand={vi.fn()} />);

  expect(texts(page, ".share-percent")).toEqual(["50.0 %", "0.0 %", "50.0 %"]);
  expect(texts(page, ".share-facts")[0]).toContain("66.7 % of channel turns, target 75.0 %");
  expect(texts(page, ".share-facts")[1]).toContain("1 banned, unreadable");
});

test("the bars add up to the whole screen, including new artwork", () => {
  const shares = [exposure({ shown: 3 }), exposure({ channel: "tide", target_ppm: 250_000, shown: 1 })];
  const page = draw(<Shares exposure={shares} newShown={4} open onCommand={vi.fn()} />);

  const widths = [...page.querySelectorAll<HTMLElement>(".share-actual")].map(({ style }) => style.width);
  const lines = [...page.querySelectorAll<HTMLElement>(".share-target")].map(({ style }) => style.left);
  expect(widths).toEqual(["37.5%", "12.5%", "50%"]);
  expect(lines).toEqual(["37.5%", "12.5%"]);
});

test("a channel is paused and resumed beside its share", () => {
  const command = vi.fn(async () => undefined);
  const shares = [exposure(), exposure({ channel: "tide", paused: true })];
  const page = draw(<Shares exposure={shares} newShown={0} open onCommand={command} />);

  expect(texts(page, ".share-facts")[1]).toContain("paused");
  for (const name of ["dawn", "tide"]) interact(() => find(page, `[data-testid=channel-${name}]`).click());
  expect(command.mock.calls).toEqual([
    [{ type: "pause_channel", channel: "dawn" }],
    [{ type: "resume_channel", channel: "tide" }],
  ]);
  const disabled = draw(<Shares exposure={shares} newShown={0} open={false} onCommand={command} />);
  expect((find(disabled, "[data-testid=channel-dawn]") as HTMLButtonElement).disabled).toBe(true);
});

test("an item is pinned as a whole record, banned by id, and the ban is lifted", () => {
  const command = vi.fn(async () => undefined);
  const bans = [
    { id: 2n ** 64n - 1n, until: null },
    { id: 7, until: 71_000 },
  ];
  const page = draw(<ViewerControls item={item()} now={{ bans, clock: 11_000 }} open onCommand={command} />);

  expect(texts(page, "[data-testid=bans] li")).toEqual(["18446744073709551615 Lift", "7 for 1 minLift"]);
  for (const name of ["do-pin", "do-ban-artwork", "lift-7"])
    interact(() => find(page, `[data-testid=${name}]`).click());
  const { channel, origin, epoch_id, ordinal, at, ...record } = item();
  expect([channel, origin, epoch_id, ordinal, at]).toEqual(["dawn", "base", 0, 3, 0]);
  expect(command.mock.calls).toEqual([
    [{ type: "show_next", ...record }],
    [{ type: "ban_artwork", id: 11 }],
    [{ type: "lift", id: 7 }],
  ]);
});

test("viewer controls are disabled in the past and without an item", () => {
  const disabled = (page: HTMLElement) =>
    [...page.querySelectorAll<HTMLButtonElement>(".screen-buttons button")].map((button) => button.disabled);
  const now = { bans: [], clock: 0 };

  expect(disabled(draw(<ViewerControls item={item()} now={now} open={false} onCommand={vi.fn()} />))).toEqual([
    true,
    true,
  ]);
  expect(disabled(draw(<ViewerControls item={null} now={now} open onCommand={vi.fn()} />))).toEqual([true, true]);
});

test("a pinned item has its own key and label", () => {
  const pinned = item({ ordinal: 0, channel: null, origin: "pinned" });

  expect(keyOf(pinned)).not.toBe(keyOf(item({ ordinal: 0, channel: null, origin: "pinned", id: 12 })));
  expect([channelOf(pinned), originOf(pinned)]).toEqual(["pinned", "requested by a viewer"]);
});

test("the pool lists new artwork with its priority", () => {
  const pool = [{ id: 900, number: 0, priority_64: 32, ts: 0, payload: item().payload }];
  const page = draw(<Pool now={{ pool, probability_64: 32 }} />);

  expect(find(page, "[data-testid=panel-pool]").textContent).toContain("shown next: 50.0 %");
  expect(texts(find(page, "[data-testid=pool]"), "tbody td").slice(1)).toEqual(["900", " 50.0 %"]);
});
