"""Names of the measures of each block. No torch: tables and figures read them."""

# of every block, and of the embedding (block 0) what it has: measured in logarithms
SIZES = ("activation_rms", "gradient", "gradient_parameters")
RELATIVE = "gradient_to_last"  # gradient over that at the last block, model by model
ANGLES = ("angle_attention", "angle_mlp")  # degrees
SINGULAR = ("largest", "smallest")  # singular values of the block's Jacobian, I + J
MEASURES = (*SIZES, *ANGLES, *SINGULAR, "branch", "lost")
TOKENS = 8  # of the first window, over which the Jacobian of a block is taken
STATES = ("start", "trained")
NORM = "layernorm"  # the tutorial's
INITS = {"gpt2": "GPT-2's start", "gpt2_flat": "unscaled start", "xavier": "Xavier's start"}
NEAR = 6  # blocks from the last one, as many as have twelve sublayers
LAYERS = {"block": 1, "sublayer": 2, "matrix": 4}  # how many a block has of each
