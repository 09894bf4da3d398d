"""Every target does the same under sonde as alone, and nothing of it is lost in silence."""

import pytest

from programs import FAULTS, TRUTHS, arguments_of, label


@pytest.mark.needs("run", "report")
@pytest.mark.parametrize("program", TRUTHS + FAULTS, ids=label)
def test_a_target_does_not_notice(harness, target, program):
    harness(program.name, *arguments_of(program, target)).check()
