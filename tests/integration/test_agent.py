"""The agent inside its targets, without the rest of sonde: nobody notices it, and it misses
nothing. FLAG is enum segment_flag of wire/segment.h."""

import pytest

from programs import FAULTS, TRUTHS, arguments_of, label
from runs import run
from watching import Watch

QUIET, SIGNAL_SHARED, FEWER_SLOTS = 1, 2, 32


@pytest.fixture
def watch(build, tmp_path, environment):
    return Watch(build, tmp_path, environment)


@pytest.fixture
def own(build):
    """Programs of tests/agent."""
    return lambda name: build / "tests/agent" / name


@pytest.mark.parametrize("program", TRUTHS + FAULTS, ids=label)
def test_a_target_does_not_notice(watch, target, program):
    watch.compare([target(program.name), *arguments_of(program, target)])


@pytest.mark.alone
def test_shares_are_true(watch, target):
    report = watch.compare([target("shares"), "8000000"], timeout=240)
    assert abs(report.share("most") - 60) < 3
    assert abs(report.share("some") - 30) < 3
    assert abs(report.share("least") - 10) < 3
    assert report.recorded > 100


def test_stacks_are_whole(watch, target):
    report = watch.compare([target("deep"), "300", "500000"])
    assert report.reasons["complete"] == report.recorded > 20
    for names, _, _ in report.stacks_by_name():
        assert names[0] == "_start"
    assert report.depth_max > 300


def test_a_deeper_stack_is_cut_and_says_so(watch, target):
    report = watch.compare([target("deep"), "6000", "500000"])
    assert report.depth_max == 4096
    assert report.reasons["depth"] > 0.9 * report.recorded


def test_time_adds_up_to_cpu_time(watch, target):
    """Whatever rate is asked for: a tick is longer than a millisecond, so the kernel skips."""
    for rate in (50, 250, 4000):
        done, report = watch.run(["/usr/bin/time", "-f", "%U %S", target("shares"), "700000"],
                                 rate=rate)
        user, system = map(float, done.stderr.split())
        assert abs(report.value / 1e9 - user - system) < 0.06 + 1 / rate, (rate, done.stderr)


def test_samples_that_a_jump_has_left_are_counted(watch, target):
    """By a handler of the program's that came upon ours: lost, but not in silence."""
    done, report = watch.run([target("jumps"), "1500"], rate=250)
    assert report.generated == report.recorded + report.lost
    assert abs(report.value / 1e6 - int(done.stdout)) < 0.05 * 1500 + 30, (done.stdout, report.lost)


def test_threads_have_their_own_time(watch, target):
    report = watch.compare([target("threads"), "600000"])
    assert len(report.threads) == 4
    assert report.reasons["complete"] == report.recorded
    assert all(thread["sampled"] for thread in report.threads)


def test_a_killed_target_loses_nothing_it_wrote(watch, target):
    report = watch.compare([target("killed"), "500000"])
    assert report.recorded > 20 and report.lost <= 1


def test_an_exec_goes_on_as_the_same_process(watch, target):
    report = watch.compare([target("execchain"), "5", "50000"])
    assert len({process["pid"] for process in report.processes}) == 1
    assert sorted(process["epoch"] for process in report.processes) == list(range(6))
    assert [process["execed"] for process in report.processes] == [True] * 5 + [False]


def test_a_forking_thread_takes_its_stack_along(watch, own):
    report = watch.compare([own("forker")])
    assert len(report.processes) == 2
    assert report.reasons["complete"] == report.recorded
    assert report.share("in_child") > 20 and report.share("in_grandthread") > 20


def test_a_child_that_does_little_has_no_segment(watch, target):
    report = watch.compare([target("forkstorm"), "2000"])
    assert len(report.processes) < 200


def test_coroutines_are_walked_on_their_own_stacks(watch, target):
    report = watch.compare([target("coroutines"), "400"])
    assert report.foreign > 0.8 * report.recorded > 20
    assert report.reasons["complete"] > 0.95 * report.recorded
    assert abs(report.share("in_ping") - 50) < 10


def test_an_alternate_stack_leads_on_to_the_interrupted_one(watch, target):
    report = watch.compare([target("altstack"), "300000"])
    assert report.foreign > 0
    assert report.reasons["complete"] == report.recorded


def test_a_thread_of_another_constructor_is_found(watch, own, target):
    report = watch.compare([target("shares"), "300000"], env={"LD_PRELOAD": str(own("starter.so"))})
    assert report.share("early_work") > 20


def test_a_thread_with_signals_blocked_is_seen(watch, target):
    report = watch.compare([target("blocked"), "300000"])
    deaf = [thread for thread in report.threads if thread["tid"] != thread["pid"]]
    assert deaf and deaf[0]["recorded"] > 20
    assert report.late == 0


@pytest.mark.parametrize("mode", ["none", "mask", "vfork", "die", "ignore"])
def test_the_highest_signal_seems_untouched(watch, own, mode):
    report = watch.compare([own("signals"), mode])
    assert not any(process["flags"] & SIGNAL_SHARED for process in report.processes)


@pytest.mark.parametrize("mode", ["take", "wait", "read"])
def test_a_program_that_wants_the_signal_gets_it(watch, own, mode):
    report = watch.compare([own("signals"), mode])
    assert report.processes[0]["flags"] & SIGNAL_SHARED
    assert report.recorded > 20  # it went on with another


def test_no_wait_is_cut_short(watch, own):
    done, _ = watch.run([own("waits"), "100"], rate=100)
    assert done.stdout == "nanosleep 0 poll 0 select 0 epoll_wait 0\n", done
    assert done.status == 0


def test_a_sandboxed_child_is_observed_and_lives(watch, own):
    report = watch.compare([own("sandbox"), "fork"])
    assert len(report.processes) == 2 and report.recorded > 20


def test_a_sandbox_is_declared(watch, own):
    report = watch.compare([own("sandbox"), "before"])
    assert report.processes[0]["flags"] & QUIET
    assert report.processes[0]["threads_refused"] == 1


def test_a_program_started_in_a_sandbox_lives(watch, own):
    watch.compare([own("sandbox"), "exec"])


def test_a_library_loads_by_its_own_search_path(watch, own):
    report = watch.compare([own("runpath")])
    assert report.reasons["complete"] == report.recorded > 20


def test_limits_make_it_smaller_not_absent(watch, target):
    for limit in ("ulimit -f 200000", "ulimit -v 200000"):
        report = watch.compare(["/bin/sh", "-c", f'{limit}; exec "$0" 300000', target("shares")])
        assert report.processes[-1]["flags"] & FEWER_SLOTS, limit
        assert report.recorded > 20


def test_an_impossible_limit_is_told(watch, target):
    command = ["/bin/sh", "-c", 'ulimit -f 100; exec "$0" 100000', target("shares")]
    alone = run(command)
    done, report = watch.run(command)
    assert (done.status, done.stdout) == (alone.status, alone.stdout)
    assert "ulimit -f" in done.stderr and report.refused == 1


def test_without_a_session_it_is_inert(watch, target):
    alone = run([target("shares"), "1000"])
    done = run([target("shares"), "1000"], env={**watch.environment,
                                                "LD_PRELOAD": str(watch.library)})
    assert (done.status, done.stdout, done.stderr) == (0, alone.stdout, "")


def test_without_a_collector_it_is_inert(watch, target):
    done = run([target("shares"), "1000"], env={
        **watch.environment, "LD_PRELOAD": str(watch.library), "SONDE_SESSION": "@nobody-here"})
    assert (done.status, done.stderr) == (0, "")


def test_a_collector_killed_is_not_missed(watch, target, tmp_path):
    """C1: the target goes on to its own end."""
    out = tmp_path / "out"
    done, report = watch.run(["/bin/sh", "-c", f'"$0" 1500000 > {out}', target("shares")],
                             ["-k", "300"])
    assert done.returncode == -9 and report is None
    alone = run([target("shares"), "1500000"])
    run(["/bin/sh", "-c", f"until test -s {out}; do sleep 0.1; done"])
    assert out.read_text() == alone.stdout


def test_a_collector_asleep_blocks_nobody(watch, target):
    """C3, C4: small rings overflow meanwhile, and what was lost is known exactly."""
    report = watch.compare([target("threads"), "2000000"], ["-z", "4000", "-b", "4096"])
    assert report.lost > 0
    for thread in report.threads:
        assert thread["generated"] == thread["recorded"] + thread["lost"]
    lost = sum(thread["value_lost"] for thread in report.threads)
    kept = sum(value for _, value in report.stacks.values())
    assert lost + kept == report.value
