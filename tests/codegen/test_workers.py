"""Work in several processes."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from gradsmith_codegen import workers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_results_come_in_the_order_of_the_shares() -> None:
    assert workers.run(lambda share: share * 2, [1, 2, 3]) == [2, 4, 6]
    assert workers.run(lambda share: share, []) == []


def test_the_first_share_is_worked_on_here_and_each_other_in_a_process_of_its_own() -> None:
    processes = workers.run(lambda _: os.getpid(), [1, 2, 3])
    assert processes[0] == os.getpid()
    assert len(set(processes)) == 3


def test_results_may_be_larger_than_a_pipe_holds() -> None:
    assert workers.run(lambda share: share * 1_000_000, ["a", "b", "c"])[2] == "c" * 1_000_000


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_a_failure_is_raised_here_once_all_have_ended(failing: int) -> None:
    def work(share: int) -> None:
        if share == failing:
            raise FileNotFoundError(2, "No such file or directory", f"file{share}")

    with pytest.raises(FileNotFoundError, match=f"file{failing}") as caught:
        workers.run(work, [0, 1, 2])
    assert caught.value.filename == f"file{failing}"
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)  # there is no child left


def test_a_failure_says_where_in_the_worker_it_came_from() -> None:
    def work(share: int) -> float:
        return 1 / share

    with pytest.raises(ZeroDivisionError) as caught:
        workers.run(work, [1, 0])
    assert "in work\n" in caught.value.__notes__[0]


def test_of_several_failures_the_first_is_raised() -> None:
    def work(share: int) -> None:
        raise ValueError(share)

    with pytest.raises(ValueError, match="1"):
        workers.run(lambda share: work(share) if share else None, [0, 1, 2])


def test_a_worker_that_is_killed_is_a_failure() -> None:
    def work(share: int) -> None:
        if share:
            os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(ChildProcessError, match="without a result"):
        workers.run(work, [0, 1])


def test_a_result_that_cannot_be_sent_is_a_failure() -> None:
    with pytest.raises(ChildProcessError, match="without a result"):
        workers.run(lambda share: threading.Lock() if share else None, [0, 1])


def test_without_fork_there_is_one_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    assert workers.processors() >= 1
    monkeypatch.delattr(os, "fork")
    assert workers.processors() == 1
