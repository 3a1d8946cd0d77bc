"""Writes tests/data/digits.npz from scikit-learn's copy of the digits data. Needs scikit-learn (1.9.1 was used).

1797 images of 8 x 8 pixels with 17 grey levels, and their digits: the test set of the Optical Recognition of Handwritten
Digits data of E. Alpaydin and C. Kaynak (UCI Machine Learning Repository, doi 10.24432/C50P49, CC BY 4.0), as shipped by
scikit-learn (BSD 3-clause) in sklearn.datasets.load_digits. Stored as small integers, otherwise unchanged.

    python tests/reference/digits_data.py
"""
import pathlib

import numpy as np
from sklearn.datasets import load_digits

x, y = load_digits(return_X_y=True)
path = pathlib.Path(__file__).resolve().parents[1] / "data" / "digits.npz"
np.savez_compressed(path, x=x.astype(np.uint8), y=y.astype(np.uint8))
