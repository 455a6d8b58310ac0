"""Every figure is drawn with matplotlib's default settings, and closed."""

from collections.abc import Iterator

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def defaults() -> Iterator[None]:
    with mpl.rc_context():
        yield
    plt.close("all")
