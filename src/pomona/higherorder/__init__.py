"""Higher-order logistic regression over tuples of coded attributes, its generative twins, and Bayesian networks."""
