"""Settings come from flags, environment, file and defaults, in this order; invalid ones are named."""

import re
from pathlib import Path

import pytest

import pendula
from pendula.kernel import limits
from pendula.kernel.limits import Limit
from pendula.server.errors import InvalidSettings
from pendula.server.settings import SETTINGS, LogFormat, Settings, load


def test_defaults_serve_this_machine_only() -> None:
    settings = load({}, {})

    assert settings == Settings()
    assert (settings.host, settings.port) == ("127.0.0.1", 8765)


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    config = tmp_path / "pendula.toml"
    config.write_text('host = "10.0.0.1"\nport = 1\ndata = "from-file"\n')
    environ = {"PENDULA_PORT": "2", "PENDULA_DATA": "from-environment", "HOME": "/nowhere"}

    settings = load({"config": config, "data": "from-flag", "port": None}, environ)

    assert (settings.host, settings.port, settings.data) == ("10.0.0.1", 2, "from-flag")


def test_the_environment_can_name_the_file(tmp_path: Path) -> None:
    config = tmp_path / "pendula.toml"
    config.write_text("demo = true\n")

    assert load({}, {"PENDULA_CONFIG": str(config)}).demo


SETTABLE = [limit for limit in limits.ALL if f"limits.{limit.name}" in SETTINGS]


def test_limits_are_set_by_name(tmp_path: Path) -> None:
    config = tmp_path / "pendula.toml"
    config.write_text("[limits]\n" + "".join(f"{limit.name} = 77\n" for limit in SETTABLE))

    settings = load({"config": str(config)}, {"PENDULA_LIMITS_STREAMS": "5"})

    assert settings.allowed(limits.STREAMS) == 5
    assert all(settings.allowed(limit) == 77 for limit in SETTABLE if limit is not limits.STREAMS)
    assert Settings().allowed(limits.BODY_BYTES) == limits.BODY_BYTES.default


def test_the_settings_are_those_that_the_server_reads() -> None:
    """A setting that is accepted and never read would have no effect."""
    constants = {name: limit for name, limit in vars(limits).items() if isinstance(limit, Limit)}
    source = "".join(file.read_text(encoding="utf-8") for file in Path(pendula.__file__).parent.rglob("*.py"))
    asked = {
        constants[name].name for name in re.findall(r"\ballowed\((?:limits\.)?([A-Z_]+)\)", source) if name in constants
    }

    assert asked == {limit.name for limit in SETTABLE}


@pytest.mark.parametrize("name", ["document_bytes", "record_bytes"])
def test_a_format_bound_is_no_setting(name: str) -> None:
    with pytest.raises(InvalidSettings, match=f"limits.{name}"):
        load({f"limits.{name}": 1}, {})


def test_all_faults_are_reported_at_once_with_source_and_allowed_values(tmp_path: Path) -> None:
    config = tmp_path / "pendula.toml"
    config.write_text('prot = 1\nport = "many"\n[limits]\nbody_bytes = 0\nbodies = 1\n')
    environ = {"PENDULA_DEMO": "yes", "PENDULA_HOTS": "x"}

    with pytest.raises(InvalidSettings) as refused:
        load({"config": str(config), "host": "no host", "tls_cert": "cert.pem"}, environ)

    faults = {(fault.setting, fault.source.split()[0]) for fault in refused.value.faults}
    assert faults == {
        ("PENDULA_HOTS", "environment"),
        ("demo", "environment"),
        ("prot", "file"),
        ("port", "file"),
        ("limits.body_bytes", "file"),
        ("limits.bodies", "file"),
        ("host", "flag"),
        ("tls_key", "all"),
    }
    for meant in ("PENDULA_HOST", "port", "bodies_bytes"):
        assert f"(did you mean {meant}?)" in refused.value.message
    assert refused.value.code == "invalid_settings"
    assert refused.value.exit_code == 1
    assert "true or false" in refused.value.message


def test_faults_of_a_file_have_line_and_column(tmp_path: Path) -> None:
    config = tmp_path / "pendula.toml"
    config.write_text(
        '# ours\nprot = 1\nport = 1.5\n\n[limits]\nrequests = 9\n  body_bytes = 0\n\n[playback.folders]\nA = "x"\n'
    )

    with pytest.raises(InvalidSettings) as refused:
        load({"config": str(config)}, {"PENDULA_DEMO": "yes"})

    assert [(fault.setting, fault.line, fault.column) for fault in refused.value.faults] == [
        ("prot", 2, 1),
        ("port", 3, 1),
        ("limits.body_bytes", 7, 3),
        ("playback.folders", 9, 1),
        ("demo", 0, 0),
    ]
    assert f"port (file {config}:3:1): 1.5 is invalid, allowed: a whole number" in refused.value.message


def test_a_syntax_error_in_a_file_has_line_and_column(tmp_path: Path) -> None:
    config = tmp_path / "pendula.toml"
    config.write_text("demo = true\nport = = 1\n")

    with pytest.raises(InvalidSettings) as refused:
        load({"config": str(config)}, {})

    (fault,) = refused.value.faults
    assert (fault.setting, fault.source, fault.line, fault.column) == ("config", f"file {config}:2:8", 2, 8)


def test_the_value_of_an_unknown_setting_is_not_repeated() -> None:
    with pytest.raises(InvalidSettings) as refused:
        load({}, {"PENDULA_TOKENS": "hunter2"})

    assert "PENDULA_TOKENS" in str(refused.value)
    assert "hunter2" not in str(refused.value) + repr(refused.value.details)


@pytest.mark.parametrize("text", ["port = ", "\0", 'a = "\xff"'])
def test_a_file_with_invalid_toml_is_refused(tmp_path: Path, text: str) -> None:
    config = tmp_path / "pendula.toml"
    config.write_bytes(text.encode("latin-1"))

    with pytest.raises(InvalidSettings, match="TOML"):
        load({"config": str(config)}, {})


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSettings, match="No such file"):
        load({"config": str(tmp_path / "absent.toml")}, {})


def test_allowed_hosts_are_a_list_or_a_comma_separated_string() -> None:
    by_flag = load({"allowed_hosts": ["Example.org", "[::1]:80"]}, {}).allowed_hosts
    by_variable = load({}, {"PENDULA_ALLOWED_HOSTS": "example.org, [::1]:80"}).allowed_hosts

    assert by_flag == by_variable == ("example.org", "[::1]:80")


def test_log_format_is_one_of_two() -> None:
    assert load({"log_format": "json"}, {}).log_format is LogFormat.JSON
    with pytest.raises(InvalidSettings, match="console or json"):
        load({"log_format": "xml"}, {})


def test_the_file_or_the_environment_names_folders() -> None:
    found = load({}, {"PENDULA_PLAYBACK_FOLDERS": "garden=/a, sea=/b"}).playback.folders

    assert found == {"garden": "/a", "sea": "/b"}


@pytest.mark.req("SIM-API-22")
@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("http://localhost:5173", ("http://localhost:5173",)),
        ("HTTPS://Example.org:443/", ("https://example.org",)),
        ("http://127.0.0.1:80, http://[::1]:3000", ("http://127.0.0.1", "http://[::1]:3000")),
    ],
)
def test_allowed_origins_are_stored_as_browsers_send_them(given: str, meant: tuple[str, ...]) -> None:
    assert load({"allowed_origins": [given] if "," not in given else given}, {}).allowed_origins == meant
    assert load({}, {"SIMULATOR_CSRF_ORIGIN_ALLOWLIST": given}).allowed_origins == meant


@pytest.mark.parametrize("given", ["localhost:5173", "ftp://localhost", "http://", "*", "http://a b"])
def test_an_invalid_origin_is_refused(given: str) -> None:
    with pytest.raises(InvalidSettings):
        load({"allowed_origins": [given]}, {})


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("PENDULA_CREDIT_ENGINES", "core=http://u:SECRETPW@h"),
        ("PENDULA_PLAYBACK_MQTT", "mqtt://user:12/SECRETPW+x@host:1883/prefix"),
        ("PENDULA_PLAYBACK_MQTT", "mqtt://user:SECRETPW@host/gal+lery"),
        ("PENDULA_PLAYBACK_MQTT", "mqtt://user:SECRETPW@host/gallery?clean=1"),
    ],
)
def test_an_invalid_url_is_refused_without_its_password(variable: str, value: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        load({}, {variable: value})

    assert "SECRETPW" not in f"{refused.value} {refused.value.details}"
