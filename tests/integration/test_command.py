"""The frame around the commands: help, errors, statuses, settings, completion."""

import json
import os
import re
import subprocess

import pytest


def test_no_arguments_is_a_usage_error_with_the_overview_on_stderr(sonde):
    done = sonde()
    assert done.status == 2
    assert done.stdout == ""
    assert "Commands:" in done.stderr


def test_version(sonde, root):
    version = re.search(r"version: '([\d.]+)'", (root / "meson.build").read_text())[1]
    assert sonde("--version").stdout == f"sonde {version}\n"


def test_what_only_servers_need_is_not_loaded_at_the_start(sonde_path):
    needed = subprocess.run(["readelf", "-d", sonde_path], capture_output=True, text=True, check=True).stdout
    assert "libc.so" in needed
    assert "libcurl" not in needed and "libssl" not in needed and "libcrypto" not in needed


def test_every_command_has_help_within_80_columns(sonde, commands):
    assert "help" in commands
    for name in commands:
        shown = sonde(name, "--help")
        assert shown.status == 0
        assert shown.stdout == sonde("help", name).stdout
        assert shown.stdout.startswith(f"Usage: sonde {name}")
        assert not [line for line in shown.stdout.splitlines() if len(line) > 80]
        assert "\033" not in shown.stdout
    assert not [line for line in sonde("--help").stdout.splitlines() if len(line) > 80]


def test_help_is_bold_on_a_terminal_unless_no_color(sonde_path, environment):
    def shown(**more):
        ours, theirs = os.openpty()
        done = subprocess.Popen([sonde_path, "--help"], stdout=theirs, stderr=theirs,
                                env={**environment, "TERM": "xterm", **more})
        done.wait(10)
        os.close(theirs)
        text = os.read(ours, 1 << 16).decode()
        os.close(ours)
        return text
    assert "\033[1mUsage:" in shown(NO_COLOR="")
    assert "\033" not in shown(NO_COLOR="1")
    assert "\033" not in shown(NO_COLOR="", TERM="dumb")


def test_the_build_has_a_manual_page_for_each_command(build, commands):
    pages = {page.name for page in (build / "src/cmd").glob("sonde*.[15]")}
    assert pages == {"sonde.1", "sonde.conf.5", *(f"sonde-{name}.1" for name in commands)}


def test_an_unknown_command_is_refused_with_the_nearest(sonde):
    done = sonde("hlep")
    assert done.status == 2
    assert done.stderr == "sonde: there is no command 'hlep'; did you mean help?\n"
    assert sonde("\033[31mx").stderr == (
        "sonde: there is no command '?[31mx'; 'sonde --help' lists what there is\n")


def test_an_error_is_one_line_on_stderr_that_names_the_command(sonde):
    done = sonde("help", "--completion=fish")
    assert (done.status, done.stdout) == (2, "")
    assert done.stderr == "sonde help: --completion takes one of none or bash, not 'fish'\n"


def test_a_full_disk_is_reported(sonde_path, environment):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sonde_path, "--help"], stdout=full, stderr=subprocess.PIPE,
                              env=environment, text=True)
    assert done.returncode == 1
    assert "could not write all output: No space left on device" in done.stderr


def test_a_closed_pipe_ends_quietly(sonde_path, environment):
    done = subprocess.run(
        ["bash", "-c", f"'{sonde_path}' help --man | :; echo ${{PIPESTATUS[0]}}"], text=True,
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.stderr == ""
    assert done.stdout in ("0\n", "141\n")  # 0 if it was faster than the reader's end
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sonde_path, "help", "--man"], stdout=writer, stderr=subprocess.PIPE,
                          env=environment, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_closed_streams_do_no_harm(sonde_path, environment):
    done = subprocess.run(["bash", "-c", f"'{sonde_path}' --help <&- >&- 2>&-"], env=environment)
    assert done.returncode == 0


def complete(script, *words):
    """What bash would offer for the last word."""
    listed = " ".join(f"'{word}'" for word in words)
    program = (f"source '{script}'; COMP_WORDS=({listed}); COMP_CWORD=$((${{#COMP_WORDS[@]}}-1)); "
               "_sonde; printf '%s\\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-c", program], text=True, check=True, stdout=subprocess.PIPE)
    return done.stdout.split()


def test_bash_completes_commands_options_and_choices(build, commands):
    script = build / "src/cmd/sonde.bash"
    assert set(complete(script, "sonde", "")) == {*commands, "--help", "--version"}
    assert complete(script, "sonde", "help", "--ma") == ["--man"]
    assert complete(script, "sonde", "help", "--completion", "b") == ["bash"]
    assert complete(script, "sonde", "help", "--completion", "=", "b") == ["bash"]
    assert complete(script, "sonde", "help", "he") == ["help"]


def test_settings_are_never_read_from_the_current_folder(sonde, commands, tmp_path):
    (tmp_path / "sonde.conf").write_text("nonsense\n")
    for name in commands:
        assert sonde(name, "--help", cwd=tmp_path).status == 0


def test_make_install_puts_everything_in_its_place(build, tmp_path, commands):
    done = subprocess.run(["meson", "install", "-C", build, "--quiet", "--no-rebuild", "--destdir",
                           tmp_path], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    there = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert {"sonde", "sonde.1", "sonde.conf.5", *(f"sonde-{name}.1" for name in commands)} <= there
    completion = next(tmp_path.rglob("bash-completion/completions/sonde"))
    assert complete(completion, "sonde", "hel") == ["help"]
    assert [path.name for path in tmp_path.rglob("*.py")] == ["truth.py"]  # what verify runs
    installed = next(tmp_path.rglob("bin/sonde"))
    assert installed.stat().st_mode & 0o111
    assert next(tmp_path.rglob("include/sonde.h")).is_file()
    unit = next(tmp_path.rglob("systemd/system/sonde.service")).read_text()
    assert f"ExecStart=/{installed.relative_to(tmp_path)} serve" in unit
    file = tmp_path / "x.sonde"
    subprocess.run([installed, "run", "-q", "--heap", "-o", file, "--", "/bin/ls", "/"], check=True,
                   stdout=subprocess.DEVNULL)
    said = subprocess.run([installed, "report", "--heap", "--json", file], check=True,
                          stdout=subprocess.PIPE).stdout
    assert json.loads(said)["sections"]["heap"]["facts"]["peak"] > 32768  # the folder's own buffer
