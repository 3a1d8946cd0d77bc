"""Writes tests/data/digits.npz from scikit-learn's copy of the digits data, and what its own network makes of them
to tests/reference/digits.json. Needs scikit-learn (1.9.1 was used). From the root of the repository:

    python tests/reference/digits.py
"""
import json
import pathlib
import warnings

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

HERE = pathlib.Path(__file__).resolve().parent
TRAIN = 1347

x, y = load_digits(return_X_y=True)
np.savez_compressed(HERE.parent / "data" / "digits.npz", x=x.astype(np.uint8), y=y.astype(np.uint8))

# The network of examples/digits.fold, with the same start: Glorot's, from RandomState(0). Full batches, so that one iteration is one step.
warnings.simplefilter("ignore")
network = MLPClassifier((32, ), activation="tanh", solver="adam", learning_rate_init=0.01, batch_size=TRAIN, max_iter=200,
                        alpha=0, tol=0, n_iter_no_change=1000, random_state=0, shuffle=False)
network.fit(x[:TRAIN] / 16, y[:TRAIN])
figures = {"made_by": f"tests/reference/digits.py with scikit-learn {sklearn.__version__}", "losses": network.loss_curve_,
           "accuracy": network.score(x[TRAIN:] / 16, y[TRAIN:])}
(HERE / "digits.json").write_text(json.dumps(figures, indent=1) + "\n")
