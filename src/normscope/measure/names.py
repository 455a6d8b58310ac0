"""Names of measured quantities, which are columns of tables. Does not import torch."""

from normscope.nn.recipe import NormBackward

SHARES = ("r_mean", "r_radial", "r_tangent")  # of a gradient's energy, by direction
SURROGATES: tuple[NormBackward, ...] = ("center_scale", "projected", "straight_through")
