"""starfold.sklearn: scikit-learn's own checks, the same answers as scikit-learn on pooled data, federations."""
import pickle
import warnings

import numpy as np
import pytest

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.cluster import KMeans as TheirKMeans  # noqa: E402
from sklearn.decomposition import PCA as TheirPCA  # noqa: E402
from sklearn.linear_model import Lasso as TheirLasso  # noqa: E402
from sklearn.linear_model import LinearRegression as TheirLinear  # noqa: E402
from sklearn.linear_model import LogisticRegression as TheirLogistic  # noqa: E402
from sklearn.linear_model import PoissonRegressor as TheirPoisson  # noqa: E402
from sklearn.linear_model import Ridge as TheirRidge  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler as TheirScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

from starfold.sklearn import KMeans, Lasso, LinearRegression, LogisticRegression, PCA, PoissonRegressor, Ridge, StandardScaler  # noqa: E402

ALL = [LinearRegression(), Ridge(), Lasso(alpha=0.1), LogisticRegression(), PoissonRegressor(), KMeans(n_clusters=3, n_init=5, random_state=0), PCA(), StandardScaler()]


@parametrize_with_checks(ALL)
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


@pytest.fixture
def records(rng):
    x = rng.normal(size=(300, 4)) @ np.diag([1, 2, 0.5, 3]) + [1, 0, -2, 5]
    y = x @ [1.0, -0.5, 0.0, 0.3] + rng.normal(size=300)
    return x, y


def parts(x):
    return {"north": x[:100], "south": x[100:110], "west": x[110:]}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("ours, theirs", [(LinearRegression(), TheirLinear()), (Ridge(2.5), TheirRidge(2.5)), (Lasso(0.2), TheirLasso(0.2, tol=1e-14, max_iter=100000))])
def test_least_squares(records, ours, theirs, intercept):
    x, y = records
    ours.set_params(fit_intercept=intercept)
    theirs.set_params(fit_intercept=intercept)
    theirs.fit(x, y)
    for fitted in (ours.fit(x, y), clone(ours).fit(parts(x), parts(y)), clone(ours).fit(list(parts(x).values()), list(parts(y).values()))):
        np.testing.assert_allclose(fitted.coef_, theirs.coef_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(fitted.intercept_, theirs.intercept_, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(fitted.predict(x), theirs.predict(x), rtol=1e-8)


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_logistic(records, rng, C, intercept):
    x, eta = records
    y = (rng.random(300) < 1 / (1 + np.exp(-eta))).astype(int)
    theirs = TheirLogistic(C=C, tol=1e-12, max_iter=10000, fit_intercept=intercept).fit(x, y)
    ours = LogisticRegression(C=C, fit_intercept=intercept).fit(parts(x), parts(y))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), rtol=1e-5, atol=1e-6)


def test_logistic_with_more_classes_and_words(records, rng):
    x, eta = records
    y = np.array(["low", "mid", "top"])[np.digitize(eta + rng.normal(size=300), [0, 2])]
    theirs = TheirLogistic(tol=1e-12, max_iter=10000).fit(x, y)
    ours = LogisticRegression().fit(parts(x), parts(y))
    assert ours.classes_.tolist() == ["low", "mid", "top"]
    np.testing.assert_allclose(ours.predict_proba(x), theirs.predict_proba(x), rtol=1e-4, atol=1e-5)
    assert (ours.predict(x) == theirs.predict(x)).mean() == 1


def test_poisson(records, rng):
    x, eta = records
    y = rng.poisson(np.exp(np.clip(eta / 3, -3, 3)))
    theirs = TheirPoisson(alpha=0.1, tol=1e-12, max_iter=10000).fit(x, y)
    ours = PoissonRegressor(alpha=0.1).fit(parts(x), parts(y))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-5)
    assert ours.score(x, y) == pytest.approx(theirs.score(x, y), rel=1e-6)


def test_pca(records):
    x, _ = records
    for options in ({}, {"n_components": 2}, {"n_components": 3, "whiten": True}):
        ours, theirs = PCA(**options).fit(parts(x)), TheirPCA(**options).fit(x)
        for name in ("components_", "explained_variance_", "explained_variance_ratio_", "singular_values_", "mean_"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(ours.transform(x), theirs.transform(x), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(ours.inverse_transform(ours.transform(x)), theirs.inverse_transform(theirs.transform(x)), rtol=1e-8)


def test_scaler(records):
    x, _ = records
    x = np.column_stack([x, np.full(300, 7.0)])
    ours, theirs = StandardScaler().fit(parts(x)), TheirScaler().fit(x)
    for name in ("mean_", "var_", "scale_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12)
    np.testing.assert_allclose(ours.transform(x), theirs.transform(x), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(x)), x, rtol=1e-12)


def test_kmeans(records):
    x, _ = records
    start = x[[0, 50, 200]]
    ours, theirs = KMeans(3, init=start).fit(parts(x)), TheirKMeans(3, init=start, n_init=1, tol=0, algorithm="lloyd").fit(x)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, rtol=1e-10)
    assert ours.inertia_ == pytest.approx(theirs.inertia_, rel=1e-10) and (ours.predict(x) == theirs.predict(x)).all()
    assert not hasattr(ours, "labels_") and ours.counts_.sum() == 300


def test_tables_with_names(records):
    pandas = pytest.importorskip("pandas")
    x, y = records
    frame = pandas.DataFrame(x, columns=list("abcd")).assign(out=y)
    clinics = {"north": frame[:120], "south": frame[120:]}
    ours, theirs = LinearRegression().fit(clinics, "out"), TheirLinear().fit(frame[list("abcd")], y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-8)
    assert ours.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(ours.predict(frame[list("abcd")]), theirs.predict(frame[list("abcd")]), rtol=1e-9)
    scaled = StandardScaler().fit({"north": frame[:120][list("abcd")], "south": frame[120:][list("abcd")]})
    np.testing.assert_allclose(scaled.mean_, x.mean(axis=0), rtol=1e-12)


def test_pipelines_and_grid_search(records, rng):
    x, eta = records
    y = (eta > 0).astype(int)
    pipeline = make_pipeline(StandardScaler(), PCA(3), LogisticRegression())
    assert pipeline.fit(x, y).score(x, y) > 0.7
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1.0], "pca__n_components": [2, 3]}, cv=3).fit(x, y)
    assert search.best_params_["pca__n_components"] in (2, 3)
    assert pickle.loads(pickle.dumps(search.best_estimator_)).score(x, y) == search.best_estimator_.score(x, y)


def test_what_leaves_a_client_can_be_seen(records):
    x, y = records
    exposure = Ridge().fit(parts(x), parts(y)).program_.exposure
    assert len(exposure) > 0 and all("*" not in shape for shape in exposure["shape"])


def test_wrong_federations(records):
    x, y = records
    with pytest.raises(ValueError, match="clients"):
        Ridge().fit(parts(x), list(parts(y).values())[:2])
    with pytest.raises(Exception, match="no column"):
        Ridge().fit(parts(x), "nothing")
