"""Estimators with scikit-learn's interface whose data may be split over clients.

`fit` takes what scikit-learn takes, one table, or a federation: a dict or a list of tables, with the response as a dict or list alike, or as
the name of a column. `predict` and `transform` work on one table.

>>> import numpy as np
>>> from starfold.sklearn import LinearRegression
>>> north, south = np.array([[0.0], [1.0]]), np.array([[2.0], [4.0]])
>>> model = LinearRegression().fit({"north": north, "south": south}, {"north": [1.0, 3.0], "south": [5.0, 9.0]})
>>> model.coef_.round(6), round(float(model.intercept_), 6)
(array([2.]), 1.0)

What leaves a client is what `program_` shows: programs like every other, which an owner can review.
"""
from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Tuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, ClusterMixin, OneToOneFeatureMixin, RegressorMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from starfold import _clients
from starfold._errors import DataError, UsageError
from starfold._program import Program, compile

__all__ = ["KMeans", "Lasso", "LinearRegression", "LogisticRegression", "PCA", "PoissonRegressor", "Ridge", "StandardScaler"]

MOMENTS = """# Count, means and variances of every column.
input x : [*, p]
output n = records(x)
output mean = mean[*](x)
output ss = sum[*](square(x - mean[*](x)))
"""
PRODUCTS = """# What least squares needs: means, and cross-products around them.
input x : [*, p]
input y : [*]
let xm = mean[*](x)
let ym = mean[*](y)
output n = records(x)
output x_mean = xm
output y_mean = ym
output xx = (x - xm)' @ (x - xm)
output xy = (x - xm)' @ (y - ym)
"""
SCATTER = """# Means and cross-products around them.
input x : [*, p]
let xm = mean[*](x)
output n = records(x)
output mean = xm
output xx = (x - xm)' @ (x - xm)
"""
# Newton's method: where the loss did not fall, half of the way back.
NEWTON = """# {title}
input x : [*, p]
input y : [*]
input alpha : []
input intercept : [] = 1
input tol : [] = 1e-8
input steps : [] = 100
let z = concat[2](x, full(intercept, 1))
let penalty = concat[1](full(alpha, p), full(1 - intercept, 1))
let n = records(x)
state w : [p + 1] = concat[1](zeros(p), full(intercept * {start}, 1))
state good : [p + 1] = w
state best : [] = inf
state used : [] = 0
state done : [] = 0
repeat 1000 {{
  let eta = z @ w
  let loss = {scale} * sum[*]({loss}) + 0.5 * sum(penalty * square(w))
  let g = grad(loss, w)
  let bad = not (loss <= best + 1e-12 * abs(best))
  let h = hessian(loss, w) + 1e-14 * eye(p + 1)
  let next = where(bad, (w + good) / 2, w - solve(h, g))
  done <- not bad and max(abs(g)) <= tol
  good <- where(bad, good, w)
  best <- where(bad, best, loss)
  w <- where(done, w, next)
  used <- used + 1
}} until done or used >= steps
output w = good
output used
output done
"""
LOGISTIC = NEWTON.format(title="Logistic regression with a penalty on squares.", start="0", scale="1", loss="softplus(eta) - y * eta")
POISSON = NEWTON.format(title="Poisson regression with a penalty on squares.", start="log(mean[*](y))", scale="1 / n", loss="exp(eta) - y * eta")
SOFTMAX = """# Multinomial regression with a penalty on squares.
size k = 3
input x : [*, p]
input y : [*]
input alpha : []
input intercept : [] = 1
input tol : [] = 1e-8
input steps : [] = 100
let z = concat[2](x, full(intercept, 1))
let member = one_hot(y, k)
let penalty = concat[1](full(alpha, p), full(1 - intercept, 1))
state w : [k, p + 1] = zeros(k, p + 1)
state good : [k, p + 1] = w
state best : [] = inf
state used : [] = 0
state done : [] = 0
repeat 1000 {
  let eta = z @ w'
  let loss = sum[*](logsumexp[2](eta) - sum[2](member * eta)) + 0.5 * sum(penalty * square(w))
  let g = grad(loss, w)
  let bad = not (loss <= best + 1e-12 * abs(best))
  let (values, vectors) = eigh(reshape(hessian(loss, w), k * (p + 1), k * (p + 1)))
  let kept = values > 1e-10 * max(values)
  let along = where(kept, vectors' @ reshape(g, k * (p + 1)) / where(kept, values, 1), 0)
  let next = where(bad, (w + good) / 2, w - reshape(vectors @ along, k, p + 1))
  done <- not bad and max(abs(g)) <= tol
  good <- where(bad, good, w)
  best <- where(bad, best, loss)
  w <- where(done, w, next)
  used <- used + 1
} until done or used >= steps
output w = good
output used
output done
"""
LLOYD = """# k-means by Lloyd's algorithm from given centres.
input x : [*, p]
input start : [k, p]
input tol : [] = 0
input steps : [] = 300
state centre : [k, p] = start
state used : [] = 0
repeat 1000 {
  let member = one_hot(argmax[2](-sum[3](square(x[:, new, :] - centre))), k)
  let n = sum[*](member)
  let next = where(n[:, new] > 0, member' @ x / max(n, 1)[:, new], centre)
  let moved = sum(square(next - centre))
  centre <- next
  used <- used + 1
} until moved <= tol or used >= steps
let distance = sum[3](square(x[:, new, :] - centre))
output centre
output n = sum[*](one_hot(argmax[2](-distance), k))
output inertia = sum[*](min[2](distance))
output used
"""


# ---- federations

def is_table(data: Any) -> bool:
    return (isinstance(data, np.ndarray) and data.ndim == 2) or hasattr(data, "__arrow_c_stream__") or hasattr(data, "columns") or isinstance(data, str) \
        or isinstance(data, Mapping)


def is_federation(X: Any) -> bool:
    if isinstance(X, Mapping):
        return not hasattr(X, "shape")  # a sparse matrix may be one too
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(is_table(part) and not isinstance(part, str) for part in X)


def column_names(table: Any) -> Optional[List[str]]:
    columns = getattr(table, "column_names", None) or getattr(table, "columns", None)
    if columns is None or callable(columns):
        return None
    names = list(columns)
    return names if all(isinstance(name, str) for name in names) else None


def column_values(table: Any, name: str) -> np.ndarray:
    column = table[name]
    return np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)


class Federation:
    """Tables and responses by client, ready for a run."""

    def __init__(self, X: Any, y: Any = None):
        self.tables: Dict[str, Any] = _clients.named(X if isinstance(X, Mapping) else list(X))
        self.response: Optional[str] = y if isinstance(y, str) else None
        self.responses: Dict[str, Any] = {}
        first = next(iter(self.tables.values()))
        self.names = column_names(first)
        if self.response is not None and (self.names is None or self.response not in self.names):
            raise DataError(f"there is no column {self.response} to be the response")
        if self.response is not None:
            self.names = [name for name in self.names if name != self.response]
        elif y is not None:
            parts = list(y.values()) if isinstance(y, Mapping) else list(y)
            if isinstance(y, Mapping) and list(map(str, y)) != list(self.tables):
                raise UsageError("X and y name different clients")
            if len(parts) != len(self.tables):
                raise UsageError(f"X has {len(self.tables)} clients, y has {len(parts)}")
            self.responses = {name: column_or_1d(part) for name, part in zip(self.tables, parts)}
        self.features = len(self.names) if self.names is not None else np.shape(first)[1]

    def labels(self) -> np.ndarray:
        values = [column_values(table, self.response) for table in self.tables.values()] if self.response else list(self.responses.values())
        return np.unique(np.concatenate([np.asarray(value) for value in values]))

    def clients(self, recode=None) -> Tuple[Dict[str, Any], Optional[Dict[str, Any]]]:
        """What Program.run takes: clients and bindings."""
        if self.response is not None and recode is None:
            return self.tables, {"x": self.names, "y": self.response}
        if self.response is None and not self.responses and self.names is not None:
            return self.tables, {"x": self.names}
        clients: Dict[str, Any] = {}
        for name, table in self.tables.items():
            matrix = self.matrix(table)
            clients[name] = {"x": matrix}
            if self.response is not None or self.responses:
                y = column_values(table, self.response) if self.response else self.responses[name]
                y = recode(y) if recode is not None else np.asarray(y, dtype=np.float64)
                if len(y) != len(matrix):
                    raise DataError(f"client {name} has {len(matrix)} records, but {len(y)} responses")
                clients[name]["y"] = y
        return clients, None

    def matrix(self, table: Any) -> np.ndarray:
        if isinstance(table, np.ndarray):
            return table
        if self.names is not None:
            return np.column_stack([column_values(table, name).astype(np.float64) for name in self.names])
        return np.asarray(table, dtype=np.float64)


class _Federated(BaseEstimator):
    """What all estimators here share."""

    def _program(self, text: str) -> Program:
        self.program_ = compile(text, type(self).__name__)
        return self.program_

    def _records(self, X: Any, y: Any = None, *, numeric_y: bool = True, **options: Any) -> Federation:
        """X and y, checked as scikit-learn does where they are one table."""
        if is_federation(X):
            federation = Federation(X, y)
            self.n_features_in_ = federation.features
            if federation.names is not None:
                self.feature_names_in_ = np.asarray(federation.names, dtype=object)
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return federation
        if y is None and not self.__sklearn_tags__().target_tags.required:
            X = validate_data(self, X, dtype=[np.float64, np.float32], **options)
            return Federation({"data": X})
        X, y = validate_data(self, X, y, dtype=[np.float64, np.float32], y_numeric=numeric_y, **options)
        y = column_or_1d(y, warn=True)
        return Federation({"data": X}, {"data": y})

    def _run(self, text: str, federation: Federation, recode=None, **inputs: Any):
        clients, bind = federation.clients(recode)
        return self._program(text).run(clients, bind=bind, threads=self.threads, progress=False, **inputs)

    def _matrix(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=[np.float64, np.float32], reset=False)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags


# ---- least squares

class _LeastSquares(RegressorMixin, _Federated):

    def fit(self, X, y):
        """Fits over one table or a federation."""
        self._check()
        fit = self._run(PRODUCTS, self._records(X, y))
        n, xx, xy = float(fit["n"]), fit["xx"], fit["xy"]
        x_mean, y_mean = fit["x_mean"], float(fit["y_mean"])
        if n < 1:
            raise DataError("there are no records")
        if not self.fit_intercept:  # around zero instead of the means
            xx = xx + n * np.outer(x_mean, x_mean)
            xy = xy + n * x_mean * y_mean
        self.coef_ = self._solve(xx, xy, n)
        self.intercept_ = y_mean - x_mean @ self.coef_ if self.fit_intercept else 0.0
        self.n_iter_ = getattr(self, "n_iter_", None) or 1
        return self

    def _check(self) -> None:
        pass

    def predict(self, X):
        return self._matrix(X) @ self.coef_ + self.intercept_


class LinearRegression(_LeastSquares):
    """Least squares; of many solutions the shortest, as in scikit-learn."""

    def __init__(self, *, fit_intercept=True, threads=None):
        self.fit_intercept = fit_intercept
        self.threads = threads

    def _solve(self, xx, xy, n):
        return np.linalg.pinv(xx, rcond=1e-12, hermitian=True) @ xy


class Ridge(_LeastSquares):
    """Least squares with alpha times the sum of squares as a penalty."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, threads=None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.threads = threads

    def _check(self):
        if self.alpha < 0:
            raise ValueError(f"alpha == {self.alpha}, must be >= 0.0")

    def _solve(self, xx, xy, n):
        return np.linalg.pinv(xx + self.alpha * np.eye(len(xx)), rcond=1e-13, hermitian=True) @ xy


class Lasso(_LeastSquares):
    """Least squares with alpha times the sum of absolute values as a penalty; scikit-learn's scale: the squares are divided by 2n."""

    def __init__(self, alpha=1.0, *, fit_intercept=True, max_iter=10000, tol=1e-10, threads=None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.threads = threads

    def _check(self):
        if self.alpha < 0:
            raise ValueError(f"alpha == {self.alpha}, must be >= 0.0")

    def _solve(self, xx, xy, n):
        """Coordinate descent: records are not needed for it, only their cross-products."""
        w = np.zeros(len(xy))
        rest = xy.copy()  # xy - xx @ w
        for self.n_iter_ in range(1, self.max_iter + 1):
            largest = change = 0.0
            for j in range(len(w)):
                if xx[j, j] <= 0:
                    continue
                pull = rest[j] + xx[j, j] * w[j]
                new = np.sign(pull) * max(abs(pull) - n * self.alpha, 0.0) / xx[j, j]
                if new != w[j]:
                    rest -= xx[:, j] * (new - w[j])
                    change = max(change, abs(new - w[j]))
                    w[j] = new
                largest = max(largest, abs(w[j]))
            if change <= self.tol * max(largest, 1e-300):
                break
        return w


# ---- Newton's method

class LogisticRegression(ClassifierMixin, _Federated):
    """Logistic regression, with more than two classes multinomial; C is the inverse of the penalty on squares, as in scikit-learn."""

    def __init__(self, *, C=1.0, fit_intercept=True, max_iter=100, tol=1e-8, threads=None):
        self.C = C
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.threads = threads

    def fit(self, X, y):
        """Fits over one table or a federation."""
        federation = self._records(X, y, numeric_y=False)
        labels = federation.labels()
        check_classification_targets(labels)
        self.classes_ = labels
        if len(labels) < 2:
            raise ValueError(f"a classifier needs samples of at least 2 classes in the data, but the data contains only one class: {labels[0] if len(labels) else 'none'}")
        two = len(labels) == 2

        def recode(values):
            return np.searchsorted(labels, values).astype(np.float64) + (0 if two else 1)
        inputs = {"alpha": 1.0 / self.C, "intercept": float(self.fit_intercept), "tol": self.tol, "steps": self.max_iter}
        if not two:
            inputs["k"] = len(labels)
        fit = self._run(LOGISTIC if two else SOFTMAX, federation, recode, **inputs)
        w = np.atleast_2d(fit["w"])
        self.coef_, self.intercept_ = w[:, :-1], w[:, -1] * float(self.fit_intercept)
        self.n_iter_ = np.array([int(fit["used"])])
        if not fit["done"]:
            import warnings
            warnings.warn("Newton's method did not converge; raise max_iter", ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X):
        scores = self._matrix(X) @ self.coef_.T + self.intercept_
        return scores.ravel() if scores.shape[1] == 1 else scores

    def predict_proba(self, X):
        scores = self.decision_function(X)
        if scores.ndim == 1:
            positive = 0.5 * (1 + np.tanh(scores / 2))
            return np.column_stack([1 - positive, positive])
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def predict_log_proba(self, X):
        return np.log(self.predict_proba(X))

    def predict(self, X):
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]


class PoissonRegressor(RegressorMixin, _Federated):
    """Poisson regression with log link and alpha / 2 times the sum of squares as a penalty on the mean deviance, as in scikit-learn."""

    def __init__(self, *, alpha=1.0, fit_intercept=True, max_iter=100, tol=1e-8, threads=None):
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.threads = threads

    def fit(self, X, y):
        """Fits over one table or a federation."""
        federation = self._records(X, y)
        if any(np.min(part, initial=0) < 0 for part in federation.responses.values()):
            raise ValueError("Some value(s) of y are out of the valid range of counts: they are negative")
        fit = self._run(POISSON, federation, alpha=float(self.alpha), intercept=float(self.fit_intercept), tol=self.tol, steps=self.max_iter)
        self.coef_, self.intercept_ = fit["w"][:-1], float(fit["w"][-1]) * float(self.fit_intercept)
        self.n_iter_ = int(fit["used"])
        if not fit["done"]:
            import warnings
            warnings.warn("Newton's method did not converge; raise max_iter", ConvergenceWarning, stacklevel=2)
        return self

    def predict(self, X):
        return np.exp(self._matrix(X) @ self.coef_ + self.intercept_)

    def score(self, X, y, sample_weight=None):
        """The part of the deviance that is explained, as scikit-learn's PoissonRegressor has it."""
        from sklearn.metrics import d2_tweedie_score
        return d2_tweedie_score(y, self.predict(X), power=1, sample_weight=sample_weight)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.regressor_tags.poor_score = True
        return tags


# ---- without a response

class StandardScaler(OneToOneFeatureMixin, TransformerMixin, _Federated):
    """Means and standard deviations of all records, and tables that are scaled by them."""

    def __init__(self, *, with_mean=True, with_std=True, threads=None):
        self.with_mean = with_mean
        self.with_std = with_std
        self.threads = threads

    def fit(self, X, y=None):
        """Fits over one table or a federation."""
        fit = self._run(MOMENTS, self._records(X))
        self.n_samples_seen_ = int(fit["n"])
        self.mean_ = fit["mean"]
        self.var_ = fit["ss"] / max(self.n_samples_seen_, 1)
        # What does not vary beyond rounding is left as it is.
        noise = self.n_samples_seen_ * np.finfo(np.float64).eps * np.abs(self.mean_) + np.finfo(np.float64).eps
        scale = np.sqrt(self.var_)
        self.scale_ = np.where(scale <= noise, 1.0, scale)
        return self

    def transform(self, X):
        result = self._matrix(X).astype(np.float64)
        if self.with_mean:
            result = result - self.mean_
        return result / self.scale_ if self.with_std else result

    def inverse_transform(self, X):
        check_is_fitted(self)
        result = np.asarray(X, dtype=np.float64)
        result = result * self.scale_ if self.with_std else result
        return result + self.mean_ if self.with_mean else result


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Federated):
    """Principal components, with scikit-learn's signs."""

    def __init__(self, n_components=None, *, whiten=False, threads=None):
        self.n_components = n_components
        self.whiten = whiten
        self.threads = threads

    def fit(self, X, y=None):
        """Fits over one table or a federation."""
        federation = self._records(X)
        fit = self._run(SCATTER, federation)
        self.n_samples_ = n = int(fit["n"])
        if n < 2:
            raise ValueError(f"PCA needs at least 2 samples; found n_samples = {n}: 1 sample does not vary")
        most = min(n, self.n_features_in_)
        count = most if self.n_components is None else self.n_components
        if not isinstance(count, (int, np.integer)) or not 1 <= count <= most:
            raise ValueError(f"n_components={count!r} must be between 1 and min(n_samples, n_features)={most}")
        values, vectors = np.linalg.eigh(fit["xx"])
        values = np.maximum(values[::-1], 0.0)
        components = vectors[:, ::-1].T
        largest = np.argmax(np.abs(components), axis=1)
        components = components * np.where(components[np.arange(len(components)), largest] < 0, -1.0, 1.0)[:, None]
        self.mean_ = fit["mean"]
        self.components_ = components[:count]
        self.n_components_ = int(count)
        self.explained_variance_ = values[:count] / (n - 1)
        total = values.sum()
        self.explained_variance_ratio_ = values[:count] / total if total > 0 else np.zeros(count)
        self.singular_values_ = np.sqrt(values[:count])
        self.noise_variance_ = float(np.mean(values[count:most]) / (n - 1)) if count < most else 0.0
        return self

    @property
    def _n_features_out(self):
        return self.n_components_

    def transform(self, X):
        result = (self._matrix(X) - self.mean_) @ self.components_.T
        if self.whiten:
            scale = np.sqrt(self.explained_variance_)
            result = result / np.where(scale > 0, scale, 1.0)
        return result

    def inverse_transform(self, X):
        check_is_fitted(self)
        result = np.asarray(X, dtype=np.float64)
        if self.whiten:
            result = result * np.sqrt(self.explained_variance_)
        return result @ self.components_ + self.mean_


class KMeans(ClusterMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _Federated):
    """k-means by Lloyd's algorithm. `init` is "random" (around the mean, by `random_state`) or the centres to start from; of `n_init` runs the best is
    kept. `labels_` is there after a fit to one table."""

    def __init__(self, n_clusters=8, *, init="random", n_init=10, max_iter=300, tol=0.0, random_state=None, threads=None):
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.threads = threads

    def fit(self, X, y=None):
        """Fits over one table or a federation."""
        from sklearn.utils import check_random_state
        federation = self._records(X)
        scatter = self._run(SCATTER, federation)
        n = int(scatter["n"])
        if n < self.n_clusters:
            raise ValueError(f"n_samples={n} should be >= n_clusters={self.n_clusters}.")
        random = check_random_state(self.random_state)
        given = not isinstance(self.init, str)
        if not given and self.init != "random":
            raise ValueError(f"init={self.init!r}: 'random' or an array of centres")
        best = None
        for _ in range(1 if given else max(self.n_init, 1)):
            start = np.asarray(self.init, dtype=np.float64) if given else self._start(scatter, n, random)
            if start.shape != (self.n_clusters, self.n_features_in_):
                raise ValueError(f"init has shape {start.shape}, not {(self.n_clusters, self.n_features_in_)}")
            fit = self._run(LLOYD, federation, start=start, tol=float(self.tol), steps=self.max_iter)
            if best is None or fit["inertia"] < best["inertia"]:
                best = fit
        self.cluster_centers_ = best["centre"]
        self.counts_ = best["n"]
        self.inertia_ = float(best["inertia"])
        self.n_iter_ = int(best["used"])
        if not is_federation(X):
            self.labels_ = self.predict(X)
        return self

    def _start(self, scatter, n, random):
        """Centres drawn from a normal distribution with the means and covariances of the records."""
        values, vectors = np.linalg.eigh(scatter["xx"] / max(n - 1, 1))
        spread = vectors * np.sqrt(np.maximum(values, 0.0))
        return scatter["mean"] + random.standard_normal((self.n_clusters, self.n_features_in_)) @ spread.T

    @property
    def _n_features_out(self):
        return self.cluster_centers_.shape[0]

    def transform(self, X):
        """The distance of each record to each centre."""
        X = self._matrix(X)
        return np.sqrt(np.maximum(((X[:, None, :] - self.cluster_centers_)**2).sum(axis=2), 0.0))

    def predict(self, X):
        return self.transform(X).argmin(axis=1).astype(np.int32)

    def score(self, X, y=None):
        return -float((self.transform(X).min(axis=1)**2).sum())
