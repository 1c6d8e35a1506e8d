"""Where results depend on the versions of other packages, which `make floors` has the lowest of."""

from __future__ import annotations

import sklearn

# Before 1.9, bins of boosted trees ignore the weights of applicants, so the default ranking of a
# certificate differs.
SCIKIT_LEARN_1_9 = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 9)
RANKED = "kept results are of the trees of scikit-learn 1.9"
POLARS = "a pipeline that selects columns of polars needs scikit-learn 1.9"
