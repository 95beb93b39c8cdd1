"""The player of folders: dwell, keys, bans and new files in virtual time; real keys on a terminal."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pendula.cli.commands.playback import tables
from pendula.cli.commands.playback.terminal import LivePace
from pendula.kernel.errors import WrongUsage
from pendula.playback.player.gallery import Galleries, names
from pendula.playback.player.slideshow import Key, Slideshow, VirtualPace, play
from pendula.playback.runs.opening import ChannelUnreachable
from pendula.playback.settings import Exposure, Mode, Settings
from pendula.playback.sources.folder import record_of
from tests.playback.oracle import Fault
from tests.playback.program import media, pendula
from tests.playback.worlds import RoughShelf

SETTINGS = Settings(lookahead=4, preserve_history=True)


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    return [
        media(tmp_path / "sea", "s1.jpg", "s2.jpg", "s3.jpg"),
        media(tmp_path / "hills", "h1.png", "h2.png"),
    ]


def before(folders: list[Path], *, count: int | None = None, settings: Settings = SETTINGS) -> Slideshow:
    galleries = Galleries(folders)
    galleries.open()
    return Slideshow(galleries, settings, seed=1, dwell_ms=1000, count=count)


def seen(slideshow: Slideshow) -> list[tuple[str, int, int]]:
    return [(Path(one.path or "?").name, one.started_ms, one.ended_ms) for one in slideshow.appearances]


def shown(slideshow: Slideshow) -> list[str]:
    return [name for name, _, _ in seen(slideshow)]


def test_each_picture_is_shown_for_its_dwell(folders: list[Path]) -> None:
    slideshow = before(folders, count=4)

    play(slideshow, VirtualPace())

    assert seen(slideshow) == [
        ("s1.jpg", 0, 1000),
        ("h1.png", 1000, 2000),
        ("s2.jpg", 2000, 3000),
        ("h2.png", 3000, 4000),
    ]
    assert {name: (share.shown, share.ms) for name, share in slideshow.exposure().items()} == {
        "sea": (2, 2000),
        "hills": (2, 2000),
    }


@pytest.mark.parametrize("late_ms", [137, 2700])
def test_a_late_clock_changes_no_time_and_skips_no_picture(late_ms: int, folders: list[Path]) -> None:
    class Late(VirtualPace):
        def wait(self, until: int | None) -> str | None:
            return super().wait(None if until is None else until + late_ms)

    slideshow = before(folders, count=3)
    lines: list[str] = []
    slideshow.on_shown = lambda slideshow: lines.append(tables.line(slideshow).split("/")[-1])

    play(slideshow, Late())

    assert seen(slideshow) == [("s1.jpg", 0, 1000), ("h1.png", 1000, 2000), ("s2.jpg", 2000, 3000)]
    assert lines == ["s1.jpg  (sea, 1000 ms)", "h1.png  (hills, 1000 ms)", "s2.jpg  (sea, 1000 ms)"]


def test_keys_move_forward_and_back(folders: list[Path]) -> None:
    slideshow = before(folders)

    play(slideshow, VirtualPace([(300, Key.NEXT), (400, Key.PREV), (500, Key.NEXT), (1600, Key.QUIT)]))

    assert seen(slideshow) == [
        ("s1.jpg", 0, 300),
        ("h1.png", 300, 400),
        ("s1.jpg", 400, 500),
        ("h1.png", 500, 1500),
        ("s2.jpg", 1500, 1600),
    ]


def test_prev_before_the_first_picture_does_nothing(folders: list[Path]) -> None:
    slideshow = before(folders)

    play(slideshow, VirtualPace([(300, Key.PREV), (400, "z"), (500, Key.PREV), (600, Key.QUIT)]))

    assert seen(slideshow) == [("s1.jpg", 0, 600)]
    slideshow.press(Key.PREV)
    assert slideshow.message == "This is the oldest item of the history."


def test_a_pause_keeps_the_picture_and_its_remaining_time(folders: list[Path]) -> None:
    slideshow = before(folders, count=2)

    play(slideshow, VirtualPace([(400, Key.PAUSE), (9000, Key.PAUSE)]))

    assert seen(slideshow) == [("s1.jpg", 0, 9600), ("h1.png", 9600, 10_600)]


def test_a_banned_picture_is_not_shown_again(folders: list[Path]) -> None:
    slideshow = before(folders, count=12)

    play(slideshow, VirtualPace([(500, Key.BAN)]))

    assert seen(slideshow)[0] == ("s1.jpg", 0, 500)
    assert "s1.jpg" not in shown(slideshow)[1:]
    assert {"s2.jpg", "s3.jpg", "h1.png", "h2.png"} == set(shown(slideshow)[1:])


def test_a_ban_ends_when_the_folder_changes(folders: list[Path]) -> None:
    slideshow = before(folders)
    slideshow.begin()
    slideshow.press(Key.BAN)
    slideshow.rescan()
    assert "s1.jpg" not in coming(slideshow, 12)

    media(folders[0], "s0.jpg")
    slideshow.rescan()

    assert {"s0.jpg", "s1.jpg"} <= set(coming(slideshow, 12))


def coming(slideshow: Slideshow, n: int) -> list[str]:
    """The next `n` pictures, without keys."""
    already = len(slideshow.appearances)
    for _ in range(n + 1):
        slideshow.advance(slideshow.due or 0)
    return shown(slideshow)[already + 1 :]


def test_an_item_from_before_a_change_is_not_confused_with_another(folders: list[Path]) -> None:
    slideshow = before(folders)
    slideshow.begin()
    slideshow.advance(2500)
    media(folders[1], "h0.png")
    slideshow.rescan()

    slideshow.press(Key.BAN)

    assert slideshow.message is not None
    assert "from before the last change" in slideshow.message
    assert slideshow.player.programme.snapshot.channels[0].gone == ()


def test_new_files_are_noticed_and_shown(folders: list[Path]) -> None:
    slideshow = before(folders, count=9)

    class Meanwhile(VirtualPace):
        def wait(self, until: int | None) -> str | None:
            if until == 2500:
                media(folders[0], "s0.jpg")
            return super().wait(until)

    play(slideshow, Meanwhile(), look_every_ms=2500)

    assert "s0.jpg" not in shown(slideshow)[:3]
    assert shown(slideshow)[3] == "s0.jpg"
    assert slideshow.player.programme.epoch_id == 1


def test_a_scan_without_changes_changes_nothing(folders: list[Path]) -> None:
    plain, looking = before(folders, count=9), before(folders, count=9)

    play(plain, VirtualPace())
    play(looking, VirtualPace(), look_every_ms=300)

    assert seen(looking) == seen(plain)


def test_a_folder_that_disappears_keeps_its_known_files(folders: list[Path]) -> None:
    slideshow = before(folders)
    slideshow.begin()
    for file in folders[0].iterdir():
        file.unlink()
    folders[0].rmdir()

    slideshow.rescan()

    assert slideshow.message is not None
    assert "cannot be read" in slideshow.message
    assert slideshow.exposure()["sea"].weight == 32768


def test_empty_folders_wait_for_their_first_file(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    slideshow = before([tmp_path / "empty"], count=1)
    result: list[str] = []
    slideshow.on_message = result.append
    play(slideshow, VirtualPace())
    assert (seen(slideshow), slideshow.over, result) == ([], True, ["Nothing to show yet."])

    class Later(VirtualPace):
        def wait(self, until: int | None) -> str | None:
            media(tmp_path / "empty", "first.gif")
            return super().wait(until)

    waiting = before([tmp_path / "empty"], count=1)
    play(waiting, Later(), look_every_ms=700)

    assert seen(waiting) == [("first.gif", 700, 1700)]


def test_a_diagnostic_of_the_player_is_shown_once(folders: list[Path]) -> None:
    slideshow = before(folders, count=4)
    result: list[str] = []
    slideshow.on_message = result.append
    for gallery in slideshow.galleries:
        if gallery.id == "sea":
            gallery.shelf = RoughShelf([Fault.UNREADABLE] * gallery.shelf.count)

    play(slideshow, VirtualPace())

    assert result == ["sea: Its records cannot be read; it stays out until it is refreshed."]
    assert slideshow.message == result[0]
    assert "it stays out" in drawn(tables.picture(slideshow))


def test_the_count_ends_the_slideshow_also_with_keys(folders: list[Path]) -> None:
    for key in (Key.NEXT, Key.BAN):
        slideshow = before(folders, count=2)
        play(slideshow, VirtualPace([(100, Key.NEXT), (300, key)]))
        assert seen(slideshow) == [("s1.jpg", 0, 100), ("h1.png", 100, 300)]


def test_a_number_key_shows_that_picture_next_once(folders: list[Path]) -> None:
    slideshow = before(folders, count=7)

    play(slideshow, VirtualPace([(300, "3")]))

    assert shown(slideshow) == ["s1.jpg", "h2.png", "h1.png", "s2.jpg", "h2.png", "s3.jpg", "h1.png"]


def test_a_pinned_picture_is_named_and_has_the_dwell_of_its_record(folders: list[Path]) -> None:
    slideshow = before(folders)
    slideshow.begin()

    slideshow.press("2")
    assert slideshow.message is not None
    assert slideshow.message.endswith("s2.jpg is next.")
    slideshow.press(Key.NEXT)

    assert "s2.jpg" in drawn(tables.picture(slideshow))
    assert "pinned, out of turn" in drawn(tables.picture(slideshow))
    assert slideshow.due == 1000


def test_a_number_beyond_the_lookahead_is_reported(folders: list[Path]) -> None:
    slideshow = before(folders, settings=Settings(lookahead=1))
    slideshow.begin()

    slideshow.press("5")

    assert slideshow.message == "The lookahead has only 0 pictures."


def test_a_ban_from_every_folder_survives_changes_and_can_be_undone(folders: list[Path]) -> None:
    slideshow = before(folders)
    slideshow.begin()
    slideshow.press(Key.NEVER)
    assert shown(slideshow) == ["s1.jpg"]
    media(folders[0], "s0.jpg")
    slideshow.rescan()
    assert "s1.jpg" not in coming(slideshow, 12)

    slideshow.press(Key.LIFT)

    assert "s1.jpg" in coming(slideshow, 12)
    slideshow.press(Key.LIFT)
    assert slideshow.message == "Nothing is banned in all folders."


def test_a_ban_from_every_folder_ends_a_reached_count(folders: list[Path]) -> None:
    slideshow = before(folders, count=2)

    play(slideshow, VirtualPace([(100, Key.NEXT), (300, Key.NEVER)]))

    assert seen(slideshow) == [("s1.jpg", 0, 100), ("h1.png", 100, 300)]


def test_a_folder_is_paused_until_all_are_resumed(folders: list[Path]) -> None:
    slideshow = before(folders)
    slideshow.begin()

    slideshow.press(Key.REST)
    assert set(coming(slideshow, 6)) == {"h1.png", "h2.png"}
    slideshow.press(Key.ALL)

    assert {"s2.jpg", "s3.jpg"} <= set(coming(slideshow, 6))
    slideshow.press(Key.ALL)
    assert slideshow.message == "No folder is paused."


def test_a_picture_from_no_folder_pauses_none(folders: list[Path]) -> None:
    slideshow = before(folders)
    slideshow.begin()
    slideshow.press("1")
    slideshow.press(Key.NEXT)

    slideshow.press(Key.REST)

    assert slideshow.message == "This picture belongs to no folder."
    assert slideshow.player.programme.paused_channels == ()


def test_the_memory_of_a_long_running_player_is_bounded(folders: list[Path]) -> None:
    galleries = Galleries(folders)
    galleries.open()
    slideshow = Slideshow(galleries, SETTINGS, seed=1, dwell_ms=1, count=50, remember=5)

    play(slideshow, VirtualPace())

    assert [one.started_ms for one in slideshow.appearances] == [45, 46, 47, 48, 49]
    assert sum(share.shown for share in slideshow.exposure().values()) == 50


def test_shares_follow_the_growing_size_of_folders(tmp_path: Path) -> None:
    folders = [media(tmp_path / "a", "1.jpg"), media(tmp_path / "b", "1.jpg", "2.jpg", "3.jpg")]
    slideshow = before(folders, settings=Settings(Exposure(Mode.PRE)))
    assert [share.weight for share in slideshow.exposure().values()] == [18933, 46603]

    media(folders[0], "2.jpg", "3.jpg")
    slideshow.rescan()

    assert [share.weight for share in slideshow.exposure().values()] == [32768, 32768]


def test_folders_with_one_name_are_distinguished_by_their_paths(tmp_path: Path) -> None:
    left, right = media(tmp_path / "x/sea"), media(tmp_path / "y/sea")

    assert names([left, right, tmp_path]) == [str(left), str(right), tmp_path.name]
    with pytest.raises(WrongUsage, match="twice"):
        Galleries([left, left])
    with pytest.raises(WrongUsage, match="65 folders"):
        Galleries([tmp_path / str(number) for number in range(65)])


def test_every_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ChannelUnreachable) as refused:
        Galleries([tmp_path / "one", media(tmp_path / "two"), tmp_path / "three"]).open()

    assert [channel["channel"] for channel in refused.value.channels] == ["one", "three"]


def test_cache_files_are_kept_and_grow_with_their_folder(folders: list[Path], tmp_path: Path) -> None:
    def one_run() -> list[str]:
        galleries = Galleries(folders, tmp_path / "cache")
        galleries.open()
        slideshow = Slideshow(galleries, SETTINGS, seed=1, dwell_ms=1000, count=4)
        play(slideshow, VirtualPace(), look_every_ms=1500)
        return shown(slideshow)

    assert one_run() == ["s1.jpg", "h1.png", "s2.jpg", "h2.png"]
    files = {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir()}
    assert len(files) == 2
    assert one_run() == ["s1.jpg", "h1.png", "s2.jpg", "h2.png"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "cache").iterdir()} == files
    media(folders[0], "s0.jpg")
    assert one_run() == ["s0.jpg", "h1.png", "s1.jpg", "h2.png"]


def test_new_files_are_noticed_with_a_cache_too(folders: list[Path], tmp_path: Path) -> None:
    galleries = Galleries(folders, tmp_path / "cache")
    galleries.open()
    slideshow = Slideshow(galleries, SETTINGS, seed=1, dwell_ms=1000)
    slideshow.begin()
    media(folders[0], "s0.jpg")
    (folders[0] / "s1.jpg").unlink()

    slideshow.rescan()

    assert set(coming(slideshow, 8)) == {"s0.jpg", "s2.jpg", "s3.jpg", "h1.png", "h2.png"}


def drawn(renderable: Any) -> str:
    console = Console(width=250, record=True, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    with console.file:
        console.print(renderable)
    return console.export_text()


def test_the_screen_shows_the_current_item_the_lookahead_and_the_exposure(folders: list[Path]) -> None:
    slideshow = before(folders)
    assert "Nothing to show" in drawn(tables.picture(slideshow))
    assert tables.line(slideshow) == "0:00.0  (nothing)"
    slideshow.begin()
    slideshow.advance(1250)

    result = drawn(tables.picture(slideshow))

    assert "h1.png" in result
    assert "hills, base, item 2 of epoch 0" in result
    assert "0:00.7 left" in result
    assert "next: s2.jpg · h2.png · s3.jpg" in result
    assert "50.0 %" in result
    assert "q quit" in result
    assert tables.line(slideshow) == f"0:01.0  {folders[1] / 'h1.png'}  (hills, 1000 ms)"
    slideshow.press(Key.PAUSE)
    slideshow.press(Key.PREV)
    slideshow.press(Key.PREV)
    paused = drawn(tables.picture(slideshow))
    assert "paused" in paused
    assert "This is the oldest item of the history." in paused


def test_control_characters_in_file_names_are_escaped(tmp_path: Path) -> None:
    slideshow = before([media(tmp_path / "x", "\x1b[2J[red].jpg")], count=1)
    slideshow.begin()

    result = drawn(tables.picture(slideshow))
    slideshow.advance(5000)

    assert "\x1b" not in result
    assert r"\x1b[2J[red].jpg" in result
    assert r"\x1b[2J[red].jpg" in drawn(tables.played(slideshow))


@pytest.mark.parametrize(("ms", "text"), [(0, "0:00.0"), (999, "0:00.9"), (61_500, "1:01.5"), (3_600_000, "1:00:00.0")])
def test_time_is_shown_in_minutes_and_seconds(ms: int, text: str) -> None:
    assert tables.clock(ms) == text


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """The writing end and the keyboard."""
    typing, keyboard = os.openpty()
    try:
        yield typing, keyboard
    finally:
        os.close(typing)
        os.close(keyboard)


def test_keys_are_read_as_they_are_pressed() -> None:
    read, write = os.pipe()
    clock = iter(range(1000))
    pace = LivePace(read, steady_ms=lambda: next(clock))
    slept: list[float] = []
    pace._sleep = slept.append

    os.write(write, b"N")
    assert pace.wait(None) == "n"
    os.write(write, b"\x1b[C")
    assert pace.wait(None) == Key.NEXT
    os.write(write, b"\x1b[D")
    assert pace.wait(10_000) == Key.PREV
    os.write(write, b" \xff")
    assert pace.wait(None) == Key.PAUSE
    assert pace.wait(None) not in tuple(Key)
    assert pace.wait(0) is None
    os.close(write)
    assert pace.wait(1_000_000) is None
    os.close(read)

    assert len(slept) == 1
    assert pace.wait(None) == Key.QUIT


def test_without_a_keyboard_it_sleeps_until_the_next_picture() -> None:
    now = [5000]
    slept: list[float] = []
    pace = LivePace(steady_ms=lambda: now[0], sleep=slept.append)

    now[0] = 5400
    assert (pace.now(), pace.wait(1000), pace.wait(100)) == (400, None, None)

    assert slept == [0.6, 0]


def test_the_terminal_is_read_key_by_key_and_restored(folders: list[Path]) -> None:
    import termios

    with terminal() as (typing, keyboard):
        attributes = termios.tcgetattr(keyboard)
        os.write(typing, b"nq")
        ended = subprocess.run(
            [sys.executable, "-m", "pendula", "playback", "play", *folders, "--json"],
            stdin=keyboard,
            capture_output=True,
            timeout=300,
            check=False,
        )
        after = termios.tcgetattr(keyboard)

    assert ended.returncode == 0, ended.stderr
    assert [one.split(b'"', 1)[0].rsplit(b"/")[-1] for one in ended.stdout.split(b'"path":"')[1:]] == [
        b"s1.jpg",
        b"h1.png",
    ]
    assert after == attributes


def test_fast_gives_the_same_result_without_waiting(folders: list[Path]) -> None:
    ended = pendula("play", *folders, "--fast", "--count", "3", "--json", "--dwell-ms", "2000")

    first = record_of("s1.jpg", 0)
    assert (ended.code, ended.err) == (0, "")
    assert ended.result["shown"][0] == {
        "channel": "sea",
        "ended_ms": 2000,
        "id": first.id,
        "path": str(folders[0] / "s1.jpg"),
        "started_ms": 0,
    }
    assert [item["started_ms"] for item in ended.result["shown"]] == [0, 2000, 4000]
    assert ended.result["exposure"] == {
        "sea": {"ms": 4000, "shown": 2, "weight": 32768},
        "hills": {"ms": 2000, "shown": 1, "weight": 32768},
    }


def test_a_live_player_logs_each_item(folders: list[Path]) -> None:
    ended = pendula("play", *folders, "--count", "2", "--dwell-ms", "1")

    assert ended.code == 0
    assert [line.split("  ")[1] for line in ended.err.splitlines()] == [
        str(folders[0] / "s1.jpg"),
        str(folders[1] / "h1.png"),
    ]
    assert "2 pictures of 2 channels in 0:00.0, seed " in ended.out


def test_a_picture_is_shown_until_the_interrupt(folders: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    class Impatient:
        """Ctrl+C after four seconds."""

        def __init__(self, keyboard: int | None = None) -> None:
            self._now = 0

        def now(self) -> int:
            return self._now

        def wait(self, until: int | None) -> str | None:
            self._now = 4000
            raise KeyboardInterrupt

    monkeypatch.setattr("pendula.cli.commands.playback.terminal.LivePace", Impatient)

    result = pendula("play", *folders, "--dwell-ms", "10000", "--json").result

    assert [(item["started_ms"], item["ended_ms"]) for item in result["shown"]] == [(0, 4000)]


def test_the_log_says_that_there_is_nothing_to_show_yet(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    ended = pendula("play", tmp_path / "empty", "--fast", "--count", "2")

    assert (ended.code, ended.err) == (0, "pendula: Nothing to show yet.\n")


def test_weights_set_the_share_of_each_folder(folders: list[Path], tmp_path: Path) -> None:
    arguments = ("--fast", "--count", "8", "--json", "--weight", "sea=3", "--weight", "hills=1")

    result = pendula("play", *folders, *arguments, "--seed", "7", "--cache", tmp_path / "cache").result

    assert result == pendula("play", *folders, *arguments, "--seed", "7", "--mode", "MaE").result
    assert {name: share["shown"] for name, share in result["exposure"].items()} == {"sea": 6, "hills": 2}


def test_random_picks_depend_on_the_seed(folders: list[Path]) -> None:
    def run(seed: int) -> list[int]:
        arguments = ("--fast", "--count", "12", "--json", "--pick", "random", "--seed", seed)
        return [item["id"] for item in pendula("play", *folders, *arguments).result["shown"]]

    assert run(1) == run(1)
    assert run(1) != run(2)
    by_chance = pendula("play", *folders, "--fast", "--count", "12", "--json", "--pick", "random").result
    assert run(by_chance["seed"]) == [item["id"] for item in by_chance["shown"]]


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (("--fast",), "--count"),
        (("--weight", "see=3"), "did you mean sea?"),
        (("--weight", "sea"), "unknown channel"),
        (("--weight", "sea=lots"), "not a number"),
        (("--weight", "sea=NaN"), "not a number"),
        (("--weight", "sea=1", "--mode", "EqE"), "--weight is for"),
        (("--mode", "none"), "--mode"),
        (("--pick", "none"), "--pick"),
        (("--count", "0"), "--count"),
        (("--dwell-ms", "0"), "--dwell-ms"),
        (("--dwell-ms", "86400001"), "--dwell-ms"),
        (("--seed", "-1"), "--seed"),
        (("--seed", str(2**64)), "--seed"),
    ],
)
def test_wrong_usage_of_play_is_exit_2(arguments: tuple[str, ...], result: str, folders: list[Path]) -> None:
    ended = pendula("play", *folders, *arguments)

    assert (ended.code, ended.out) == (2, "")
    assert result in ended.err


def test_a_missing_folder_is_exit_1_and_an_unwritable_cache_exit_3(folders: list[Path], tmp_path: Path) -> None:
    missing = pendula("play", tmp_path / "none", "--fast", "--count", "1", "--json")
    unwritable = pendula("play", *folders, "--fast", "--count", "1", "--cache", folders[0] / "s1.jpg", "--json")

    assert (missing.code, missing.error["code"]) == (3, "channel_unreachable")
    assert (unwritable.code, unwritable.error["code"]) == (3, "cache_unreachable")
