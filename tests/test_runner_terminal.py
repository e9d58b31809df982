"""`logdoc run` typed into a real shell on a real terminal: what the command sees, keys, job control, and the way back."""

from __future__ import annotations

import os
import shutil
import signal

import pytest

from tests.runnerkit import Shell, python, wait_for_state

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")

CTRL_C, CTRL_D, CTRL_Z, CTRL_BACKSLASH = "\x03", "\x04", "\x1a", "\x1c"


def quoted(code: str) -> str:
    executable, option, text = python(code)
    return f"{executable} {option} {text!r}" if "'" not in text else f'{executable} {option} "{text}"'


def test_the_command_is_on_a_terminal_of_the_same_size() -> None:
    shows = quoted(
        "import os; print([os.isatty(n) for n in range(3)], *os.get_terminal_size(), os.ttyname(0)==os.ttyname(2))"
    )
    with Shell(rows=33, columns=97) as shell:
        shell.start(f"{shell.run} {shows}", "[True, True, True] 97 33 True\r\n")
        assert shell.code() == 0
        assert shell.is_cooked()


def test_what_is_typed_reaches_the_command_once() -> None:
    with Shell() as shell:
        shell.start(f"{shell.run} {quoted('x = input(chr(63)); print(x + x)')}", "?")
        shell.type("ab\x7fc\n")
        assert shell.expect("\r\n").endswith("c\r\n")
        assert shell.expect("\r\n") == "acac\r\n"
        assert shell.code() == 0


def test_end_of_input_is_passed_on() -> None:
    with Shell() as shell:
        shell.start(f"{shell.run} bash -c 'echo up; cat; echo end'", "up\r\n")
        shell.type(CTRL_D)
        shell.expect("end\r\n")
        assert shell.code() == 0


@pytest.mark.parametrize(("key", "code"), [(CTRL_C, 130), (CTRL_BACKSLASH, 131)])
def test_signal_keys_end_the_command_and_say_nothing_else(key: str, code: int) -> None:
    waits = (
        "import resource, signal; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
        "signal.signal(signal.SIGINT, signal.SIG_DFL); print('up', flush=True); signal.pause()"
    )
    with Shell() as shell:
        shell.start(f"{shell.run} {quoted(waits)}", "up\r\n")
        shell.type(key)
        assert shell.code() == code
        assert shell.is_cooked()


def test_a_new_size_is_passed_on() -> None:
    with Shell() as shell:
        waits = "trap 'stty size' WINCH; echo up; while :; do read -t 1 x; done"
        shell.start(f'{shell.run} bash -c "{waits}"', "up\r\n")
        shell.resize(44, 77)
        shell.expect("44 77\r\n")


def test_a_new_size_is_passed_on_to_a_command_whose_input_is_a_file() -> None:
    with Shell() as shell:
        shows = (
            "import os, signal; show = lambda *_: (print(*os.get_terminal_size(1), flush=True), os._exit(0)); "
            "signal.signal(signal.SIGWINCH, show); print('up', flush=True); signal.pause()"
        )
        shell.start(f"{shell.run} {quoted(shows)} < /dev/null", "up\r\n")
        shell.resize(44, 77)
        shell.expect("77 44\r\n")
        assert shell.code() == 0


def test_suspend_and_go_on() -> None:
    with Shell() as shell:
        shell.start(f"{shell.run} bash -c 'echo $$; exec cat'", "")
        pid = int(shell.expect("\r\n"))
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        shell.expect("$ ")
        wait_for_state(pid, "T")
        assert shell.is_cooked()
        shell.start("fg", "cat'\r\n")
        shell.type("again\n")
        shell.expect("again\r\nagain\r\n")
        shell.type(CTRL_D)
        assert shell.code() == 0


def test_suspended_and_sent_to_the_background_it_runs_on() -> None:
    with Shell() as shell:
        shell.start(f"{shell.run} bash -c 'echo $$; exec sleep 100'", "")
        pid = int(shell.expect("\r\n"))
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        shell.start("bg", "&\r\n")
        wait_for_state(pid, "S")
        shell.expect("$ ")
        assert shell.is_cooked()
        shell.start("kill %1; wait %1", "")
        assert shell.code() == 143


def test_started_in_the_background_it_leaves_the_terminal_alone() -> None:
    with Shell() as shell:
        shell.start(f"{shell.run} bash -c 'echo pid=$$=; exec sleep 100' &", "pid=")
        wait_for_state(int(shell.expect("=")[:-1]), "S")
        assert shell.is_cooked()
        shell.type("\n")
        shell.expect("$ ")
        shell.start("kill %1; wait %1", "")
        assert shell.code() == 143


def test_in_a_pipeline_the_keyboard_stays_with_whoever_reads_it() -> None:
    """The pager's keys must not go to logdoc; and a command that does read the terminal gets it."""
    with Shell() as shell:
        shell.start(f"{shell.run} echo up | {{ cat; read key < /dev/tty; echo key=$key; }}", "up\r\n")
        shell.type("q\n")
        shell.expect("key=q\r\n")
        assert shell.code() == 0
        shell.start(f"{shell.run} {quoted('import sys; sys.stderr.write(chr(63)); print(input() * 2)')} | cat", "?")
        shell.type("ab\n")
        shell.expect("abab\r\n")
        assert shell.code() == 0


def test_a_pipeline_is_suspended_as_a_whole() -> None:
    with Shell() as shell:
        shell.start(f"{shell.run} bash -c 'echo $$ >&2; exec sleep 100' | cat", "")
        pid = int(shell.expect("\r\n"))
        shell.type(CTRL_Z)
        shell.expect("Stopped")
        wait_for_state(pid, "T")
        shell.expect("$ ")
        shell.start("fg", "cat\r\n")
        wait_for_state(pid, "S")
        shell.type(CTRL_C)
        shell.expect("$ ")


def test_when_nobody_could_wake_it_the_suspend_key_does_nothing() -> None:
    """As the first process of a terminal (docker run -it, ssh -t) it must not stop for good."""
    with Shell() as shell:
        shell.start(f"exec {shell.run} bash -c 'echo up; cat'", "up\r\n")
        shell.type(CTRL_Z + "still\n")
        shell.expect("still\r\n")


def test_colour_and_progress_come_through_as_they_are() -> None:
    with Shell() as shell:
        bar = quoted(
            "import sys; sys.stdout.write(chr(27) + '[31mred' + chr(27) + '[0m' + chr(13) + '50%'); sys.stdout.flush()"
        )
        shell.start(f"{shell.run} {bar}", "\x1b[31mred\x1b[0m\r50%")


def test_the_report_begins_on_a_line_of_its_own() -> None:
    with Shell(columns=200) as shell:
        fails = quoted("import sys; sys.stdout.write('half a line'); sys.exit(3)")
        shell.start(f"{shell.run} {fails}", "half a line\r\n")
        assert "exit code 3" in shell.expect("\r\n")
        assert shell.code() == 3


def test_a_hangup_reaches_the_command() -> None:
    with Shell() as shell:
        shell.start(f"{shell.run} bash -c 'echo $$; exec sleep 100'", "")
        pid = int(shell.expect("\r\n"))
        os.kill(shell.pid, signal.SIGHUP)
        wait_for_state(pid, "XZ")
