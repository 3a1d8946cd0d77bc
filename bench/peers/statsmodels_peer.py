"""statsmodels: logistic regression by Newton's method."""

import protocol


def make_rows():
    import statsmodels.api as sm

    def logistic_fit(data, sizes):
        x, y = data.x, data.y

        def work(turn):
            model = sm.Logit(y, x)
            return [model.fit(method="newton", tol=1e-8, maxiter=50, disp=0).params]

        return work

    return locals()


protocol.main(make_rows)
