"""Second-order learning by repeated least squares: generalized, calibrated and stagewise (Agarwal et al., 2014)."""
