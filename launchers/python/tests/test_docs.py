"""The programs in the documentation run as they are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = ["README.md", "docs/launchers/python.md", "launchers/python/README.md"]


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_pass(pytester, page):
    blocks = re.findall(r"^```python\n# (test_\w+)\.py\n(.*?)^```$", (ROOT / page).read_text(), re.M | re.S)
    assert blocks and len(blocks) == (ROOT / page).read_text().count("```python\n")
    pytester.makepyfile(**dict(blocks))
    tests = sum(len(re.findall(r"^ *(?:async )?def test_", block, re.M)) for _, block in blocks)
    pytester.runpytest_subprocess().assert_outcomes(passed=tests)
