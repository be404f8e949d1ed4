"""Types of the NumPy arrays that modules exchange."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]
"""Row numbers in a frame or a table."""
